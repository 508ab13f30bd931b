"""Collects the result of an accelerator that has run."""

from __future__ import annotations

from typing import Literal

from cosa.analytical.evaluation import evaluate_timeloop
from cosa.common.version import version
from cosa.model.layer import TENSORS, Tensor
from dram.advice import mapping_advice
from nocsim.machine.accelerator import Accelerator
from nocsim.mesh.routing import multicast_tree, unicast_route
from nocsim.mesh.topology import LinkKind
from nocsim.result.accounts import accounts, extrapolation, machine_bound, whole_clocks, whole_stats
from nocsim.result.estimate import Error
from nocsim.result.result import (
    Cycles,
    Dram,
    DramChannel,
    DramEnergy,
    FlowWords,
    LinkLoad,
    Load,
    NodeBytes,
    Result,
    RunTiming,
)


def collect(accelerator: Accelerator, timing: RunTiming | None, runs: int = 1, error: Error | None = None) -> Result:
    """The result of an accelerator that has run, the last of so many runs; `error` is that of an extrapolated total."""
    total, pes = accounts(accelerator)
    whole = accelerator.ended == "finished"
    traffic, architecture, schedule = accelerator.traffic, accelerator.architecture, accelerator.schedule
    machine = machine_bound(accelerator)
    timeloop = evaluate_timeloop(schedule.padded_layer, architecture, schedule.nest)
    cycles = Cycles(
        total=total,
        compute_only=traffic.compute_cycles,
        analytical=traffic.analytical_cycles,
        analytical_timeloop=timeloop.cycles,
        bound=machine.cycles,
        bound_by=machine.bound_by,
        steps=traffic.steps,
        cycles_per_step=traffic.cycles_per_step,
        pipeline_latency_per_step=architecture.pe.pipeline_latency_cycles,
    )
    return Result(
        version=version(),
        layer=schedule.layer.name,
        architecture=architecture.name,
        architecture_hash=architecture.content_hash,
        schedule_hash=schedule.content_hash,
        made=schedule.provenance.made,
        mesh=architecture.require_noc().mesh,
        ideal_network=accelerator.mesh is None,
        ideal_memory=not accelerator.channels,
        ended=accelerator.ended,
        cycles=cycles,
        milliseconds=total / (architecture.clock_ghz * 1e6),
        simulated_over_analytical=total / cycles.analytical if whole else None,
        simulated_over_bound=total / cycles.bound if whole else None,
        macs=schedule.layer.macs,
        padding_macs=schedule.padding_macs,
        mac_utilisation=schedule.layer.macs * accelerator.computed_share / (total * architecture.macs),
        method="exact" if accelerator.plan is None else "extrapolated",
        extrapolation=extrapolation(accelerator, total, runs, error),
        pes=pes,
        flows=tuple(
            FlowWords(
                tensor=tensor,
                source=source,
                destination=destination,
                kind=kind,
                transfers=count.transfers,
                sent_words=count.sent_words,
                received_words=count.received_words,
            )
            for (tensor, source, destination, kind), count in sorted(accelerator.ledger.flows.items())
        ),
        tensors=_tensors(accelerator),
        nodes=_nodes(accelerator),
        links=_links(accelerator, total),
        dram=_dram(accelerator, total),
        timing=timing,
    )


def _tensors(accelerator: Accelerator) -> dict[Tensor, Load]:
    sums = {tensor: [0, 0, 0] for tensor in TENSORS}
    for (tensor, _, _), load in accelerator.network.loads.items():
        for place, amount in enumerate((load.packets, load.flits, load.n_bytes)):
            sums[tensor][place] += amount
    return {tensor: Load(packets=p, flits=f, bytes=b) for tensor, (p, f, b) in sums.items()}


def _nodes(accelerator: Accelerator) -> tuple[NodeBytes, ...]:
    names = dict.fromkeys(accelerator.global_buffer.endpoints, "global_buffer")
    names |= {port.endpoint: "dram" for port in accelerator.dram_ports}
    for group in ("global_buffer", "dram"):
        members = [endpoint for endpoint, name in names.items() if name == group]
        if len(members) > 1:
            names |= {endpoint: f"{group}_{number}" for number, endpoint in enumerate(members)}
    names |= {pe.endpoints[0]: f"pe_{number}" for number, pe in accelerator.pes.items()}
    sent = {endpoint: dict.fromkeys(TENSORS, 0) for endpoint in names}
    received = {endpoint: dict.fromkeys(TENSORS, 0) for endpoint in names}
    for (tensor, src, _), load in accelerator.network.loads.items():
        sent[src][tensor] += load.n_bytes
    for (tensor, dst), n_bytes in accelerator.network.received_bytes.items():
        received[dst][tensor] += n_bytes
    return tuple(
        NodeBytes(node=name, sent=sent[endpoint], received=received[endpoint])
        for endpoint, name in sorted(names.items())
    )


def _links(accelerator: Accelerator, total: int) -> tuple[LinkLoad, ...]:
    if accelerator.mesh is None:
        return ()
    topology = accelerator.topology
    loads: dict[int, dict[Tensor, list[int]]] = {}
    for (tensor, src, dsts), load in accelerator.network.loads.items():
        route = unicast_route(topology, src, dsts[0]) if len(dsts) == 1 else multicast_tree(topology, src, dsts)
        for link in route:
            sums = loads.setdefault(link, {}).setdefault(tensor, [0, 0, 0])
            for place, amount in enumerate((load.packets, load.flits, load.n_bytes)):
                sums[place] += amount
    flits = dict(enumerate(accelerator.mesh.link_flits().tolist()))
    if accelerator.plan is not None:
        flits = {link: sum(sums[1] for sums in found.values()) for link, found in loads.items()}
    ports = {node.endpoint for node in accelerator.dram_ports} | set(accelerator.global_buffer.endpoints)
    ports |= {pe.endpoints[0] for pe in accelerator.pes.values()}
    listed = {link.number for link in topology.links() if link.kind == LinkKind.ROUTER}
    listed |= {
        link for endpoint in ports for link in (topology.injection_link(endpoint), topology.ejection_link(endpoint))
    }
    return tuple(
        LinkLoad(
            link=topology.link_name(number),
            kind=_LINK_KINDS[topology.link(number).kind],
            flits=flits.get(number, 0),
            busy_share=flits.get(number, 0) / total,
            tensors={t: Load(packets=p, flits=f, bytes=b) for t, (p, f, b) in sorted(loads.get(number, {}).items())},
        )
        for number in sorted(listed)
    )


_LINK_KINDS: dict[LinkKind, Literal["mesh", "injection", "ejection"]] = {
    LinkKind.ROUTER: "mesh",
    LinkKind.INJECTION: "injection",
    LinkKind.EJECTION: "ejection",
}


def _dram(accelerator: Accelerator, total: int) -> Dram:
    config, ratio = accelerator.dram_config, accelerator.clocks_per_core_cycle
    clock_ghz = accelerator.architecture.clock_ghz
    channels = []
    advice = mapping_advice(config) if accelerator.channels else None
    for number, channel in enumerate(accelerator.channels):
        channel.advance(accelerator.end_cycle)
        stats = whole_stats(accelerator, number, channel.stats, total)
        n_bytes = (stats.reads + stats.writes) * config.request_bytes
        rate = n_bytes / total
        channels.append(
            DramChannel(
                channel=number,
                reads=stats.reads,
                writes=stats.writes,
                row_hits=stats.row_hits,
                row_misses=stats.row_misses,
                row_conflicts=stats.row_conflicts,
                row_hit_rate=stats.row_hit_rate,
                refreshes=stats.refreshes,
                bytes=n_bytes,
                bytes_per_core_cycle=rate,
                bandwidth_gbps=rate * clock_ghz,
                peak_bandwidth_gbps=float(config.peak_bytes_per_clock * ratio) * clock_ghz,
                busy_share=stats.bus_busy_cycles / float(total * ratio),
                clocks=whole_clocks(accelerator, channel, stats),
                energy_pj=None
                if config.currents is None
                else DramEnergy(
                    background=stats.energy_background_pj,
                    activate=stats.energy_activate_pj,
                    burst=stats.energy_burst_pj,
                    refresh=stats.energy_refresh_pj,
                    total=stats.energy_pj,
                ),
            )
        )
    return Dram(
        device=accelerator.architecture.require_dram().device,
        policy=accelerator.architecture.require_dram().policy,
        mapping=accelerator.architecture.require_dram().mapping,
        clocks_per_core_cycle=str(ratio),
        advice=None if advice is None else str(advice),
        channels=tuple(channels),
    )
