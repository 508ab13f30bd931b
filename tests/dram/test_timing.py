"""An independent reader of the FR-FCFS command log: every distance between two commands is looked at again."""

import random
from collections import defaultdict

import numpy as np
import pytest

from dram.config import DramConfig
from dram.devices import load_device
from dram.system import READ, WRITE, DramSystem

Command = dict[str, int | str]


def check_distances(config: DramConfig, log: list[Command]) -> int:
    """Assert the rules of JEDEC's tables between all pairs of commands that are near enough to matter."""
    t = config.timing
    burst = t.BL // 2
    longest = max(t.tRFC, t.tRC, t.tFAW) + 64
    pairs = 0
    for i, b in enumerate(log):
        for j in range(i - 1, -1, -1):
            a = log[j]
            gap = int(b["cycle"]) - int(a["cycle"])
            if gap > longest:
                break
            pairs += 1
            assert gap >= 1, "one command a clock"
            names = (str(a["cmd"]), str(b["cmd"]))
            same_rank = a["rank"] == b["rank"]
            same_group = same_rank and a.get("bankgroup") == b.get("bankgroup")
            same_bank = same_group and a.get("bank") == b.get("bank")
            least = 0
            match names:
                case ("ACT", "ACT") if same_rank:
                    least = t.tRC if same_bank else (t.tRRD_L or t.tRRD_S) if same_group else t.tRRD_S
                case ("ACT", "RD" | "WR") if same_bank:
                    least = t.tRCD
                case ("ACT", "PREpb") if same_bank:
                    least = t.tRAS
                case ("ACT", "PREab") if same_rank:
                    least = t.tRAS
                case ("ACT", "REFab") if same_rank:
                    least = t.tRC
                case ("RD", "RD") | ("WR", "WR"):
                    if same_rank:
                        least = max(burst, (t.tCCD_L or t.tCCD_S) if same_group else t.tCCD_S)
                    else:
                        least = burst + t.tRTRS
                case ("RD", "WR"):
                    # the write data must not meet the read data on the bus
                    least = t.CL + burst - t.CWL + (1 if same_rank else t.tRTRS)
                case ("WR", "RD") if same_rank:
                    least = t.CWL + burst + ((t.tWTR_L or t.tWTR_S) if same_group else t.tWTR_S)
                case ("WR", "RD"):
                    least = t.CWL + burst + t.tRTRS - t.CL
                case ("RD", "PREpb") if same_bank:
                    least = t.tRTP
                case ("RD", "PREab") if same_rank:
                    least = t.tRTP
                case ("WR", "PREpb") if same_bank:
                    least = t.CWL + burst + t.tWR
                case ("WR", "PREab") if same_rank:
                    least = t.CWL + burst + t.tWR
                case ("PREpb", "ACT") if same_bank:
                    least = t.tRP
                case ("PREab", "ACT" | "REFab") | ("PREpb", "REFab") if same_rank:
                    least = t.tRP
                case ("REFab", _) if same_rank:
                    least = t.tRFC
            assert gap >= least, (a, b, least)
    return pairs


def check_rows(config: DramConfig, log: list[Command]) -> None:
    """Column commands go to the open row only, ACT and REF to closed banks only, at most four ACT in a window."""
    open_rows: dict[tuple[object, ...], object] = {}
    acts: dict[object, list[int]] = defaultdict(list)
    for entry in log:
        key = (entry["rank"], entry.get("bankgroup"), entry.get("bank"))
        match entry["cmd"]:
            case "ACT":
                assert key not in open_rows
                open_rows[key] = entry["row"]
                recent = acts[entry["rank"]]
                recent.append(int(entry["cycle"]))
                if len(recent) > 4:
                    assert recent[-1] - recent[-5] >= config.timing.tFAW
            case "RD" | "WR":
                assert open_rows[key] == entry["row"]
            case "PREpb":
                del open_rows[key]
            case "PREab":
                open_rows = {k: v for k, v in open_rows.items() if k[0] != entry["rank"]}
            case "REFab":
                assert all(k[0] != entry["rank"] for k in open_rows)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("pattern", ["random", "streams", "one_bank"])
@pytest.mark.parametrize("stagger", [False, True])
def test_every_constraint_holds(ranks: int, pattern: str, stagger: bool) -> None:
    config = load_device("ddr4_2400_x8")
    config = config.with_changes(
        organization=config.organization.model_dump() | {"ranks": ranks},
        controller=config.controller.model_dump() | {"refresh_stagger": stagger},
    )
    rng = random.Random(ranks)
    count = 1000
    if pattern == "random":
        blocks = [rng.randrange(1 << 25) for _ in range(count)]
    elif pattern == "streams":
        blocks = [(i % 3 << 20) + i // 3 for i in range(count)]
    else:
        blocks = [rng.randrange(64) << 14 for i in range(count)]
    ops = np.array([WRITE if rng.random() < 0.35 else READ for _ in range(count)])
    system = DramSystem(config, logging=True)
    system.submit_many(np.arange(count) * 3, ops, np.array(blocks) * 64, np.arange(count))
    done = system.advance(60_000)
    assert sorted(tag for tag, _ in done) == list(range(count))
    log = system.command_log()
    assert check_distances(config, log) > count
    check_rows(config, log)
    refreshes = sum(entry["cmd"] == "REFab" for entry in log)
    assert abs(refreshes - ranks * (60_000 / config.timing.tREFI)) <= 1.0 * ranks


def test_mapping_with_the_bank_group_lowest_streams_faster() -> None:
    """Inside one bank group a stream is bound by tCCD_L, 6 clocks (where two groups meet, less), else by tCCD_S, 4."""
    config = load_device("ddr4_2400_x8")
    last = {}
    for mapping in (config.address_mapping, "row:bank:bankgroup:rank:column"):
        system = DramSystem(config.with_changes(address_mapping=mapping))
        system.submit_many(0, READ, np.arange(8000) * 64, np.arange(8000))
        last[mapping] = max(cycle for _, cycle in system.advance(100_000))
    fast, slow = last.values()
    assert fast < 8000 * 4 * 1.10
    assert slow > 1.25 * fast
