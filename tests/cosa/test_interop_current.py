"""Files of the current Timeloop as its users have them: rendered by the front end, with what stands beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosa.analytical.evaluation import evaluate
from cosa.common.errors import InputError
from cosa.interop.convert import Inputs, converted, read_inputs
from cosa.model.schedule import Schedule
from cosa.model.validity import violations

RENDERED = """
dumped_by_timeloop_front_end: true
architecture:
  version: '0.4'
  subtree:
    - name: system
      attributes: {version: '0.4', has_power_gating: false, power_gated_at: null}
      local:
        - {name: "Dram[1..1]", class: DRAM, attributes: {width: 8, datawidth: 8, min_utilization: 0}, enabled: true}
        - name: "Glb[1..1]"
          class: SRAM
          attributes: {depth: 4096, width: 8, datawidth: 8, allow_overbooking: false, reduction_supported: true}
          required_actions: [read, write, update, leak]
        - {name: "Mac[1..1]", class: intmac, attributes: {width: 8}}
problem:
  version: '0.4'
  instance: {R: 3, P: 16, K: 32, densities: {}}
  shape:
    name: ''
    dimensions: [R, P, K]
    data_spaces:
      - {name: Weights, projection: [[[K]], [[R]]], read_write: false}
      - {name: Inputs, projection: [[[P], [R]]], read_write: false}
      - {name: Outputs, projection: [[[K]], [[P]]], read_write: true}
    coefficients: []
compound_components: {version: '0.4', classes: []}
architecture_constraints: {targets: []}
mapspace: {version: '0.4', template: uber}
globals: {version: '0.4', environment_variables: {}, expression_custom_functions: [], accelergy_plug_ins: []}
mapper: {version: '0.4', algorithm: hybrid, search_size: null}
mapping: []
"""
PRINTED = """
Dram [ Weights:96 (96) Inputs:18 (18) Outputs:512 (512) ]
---------------------------------------------------------
| for K in [0:32)

Glb [ Weights:3 (3) Inputs:18 (18) Outputs:16 (16) ]
----------------------------------------------------
|   for P in [0:16)
|     for R in [0:3)
"""
DIRECTIVES = """
mapping:
  - {target: Dram, type: temporal, factors: K=32, permutation: KPR}
  - {target: Glb, type: temporal, factors: R=3 P=16, permutation: RPK}
"""


def inputs_of(folder: Path, **texts: str) -> Inputs:
    """Files by name, `printed` as a map.txt."""
    paths = [folder / f"{name}{'.map.txt' if name == 'printed' else '.yaml'}" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    return read_inputs([str(path) for path in paths])


def schedule_of(folder: Path, **texts: str) -> Schedule:
    result = converted(inputs_of(folder, **texts), "schedule")
    assert isinstance(result, Schedule)
    return result


@pytest.mark.parametrize("beside", [{"printed": PRINTED}, {"mapping": DIRECTIVES}])
def test_a_rendered_file_beside_the_nest_of_the_mapper(tmp_path: Path, beside: dict[str, str]) -> None:
    schedule = schedule_of(tmp_path, rendered=RENDERED, **beside)
    found = evaluate(schedule.layer, schedule.architecture, schedule.nest)
    glb = found.levels[0].tensors
    assert (glb["inputs"].tile_words, glb["inputs"].fills, found.cycles) == (18, 18, 1536)
    assert schedule.architecture.is_dram(1) and not schedule.architecture.is_dram(0)


def test_a_bounded_outermost_memory_bounds(tmp_path: Path) -> None:
    rendered = RENDERED.replace("class: DRAM, attributes: {", "class: SRAM, attributes: {depth: DEPTH, ")
    # 96 weights, 18 inputs, 512 outputs.
    for depth, fits in ((626, True), (625, False)):
        schedule = schedule_of(tmp_path, rendered=rendered.replace("DEPTH", str(depth)), printed=PRINTED)
        assert schedule.architecture.levels[-1].capacity_words == depth
        assert (not violations(schedule.layer, schedule.architecture, schedule.nest)) == fits


@pytest.mark.parametrize("extra", ["dumped_by_front_end: true", "mapspaces: {}"])
def test_other_keys_are_errors(tmp_path: Path, extra: str) -> None:
    with pytest.raises(InputError, match="not a part of a Timeloop file"):
        inputs_of(tmp_path, rendered=RENDERED + extra + "\n")
