"""The commands of ``nocsim`` about the mesh alone: replay of packet lists, synthetic traffic."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cosa.common.errors import InputError
from cosa.common.options import Options, option
from cosa.common.parameters import Given, takes
from cosa.common.tables import table
from cosa.common.terminal import check_output, out
from cosa.model.noc import parse_mesh

if TYPE_CHECKING:
    from nocsim.traffic.patterns import Pattern
    from nocsim.traffic.replay import Scan
    from nocsim.traffic.synthetic import TrafficResult

Mesh = Annotated[str, typer.Option(metavar="COLUMNSxROWS", help="Size of the mesh in routers.")]
Fifo = Annotated[int, typer.Option(metavar="FLITS", help="Depth of each router's output FIFOs.")]
Reservation = Annotated[
    int, typer.Option(metavar="FLITS", help="Free places a multicast head needs in every FIFO it forks into.")
]
HEAT_HELP = "Busy share of every link: a picture (.png .svg .pdf) or a table (.csv)."
Heat = Annotated[str | None, typer.Option(metavar="FILE", help=HEAT_HELP)]


class HowToLoad(Options):
    """What `nocsim traffic` loads the mesh with, and what it writes; ranges are checked by what takes them."""

    pattern: str | None = option(
        None, "uniform, transpose, bitcomp, bitrev, shuffle, tornado, neighbor, hotspot or multicast.", metavar="NAME"
    )
    booksim: str | None = option(
        None, "Configuration of BookSim 2 for what is not given here: mesh, pattern, load, lengths.", metavar="FILE"
    )
    mesh: str = option("8x8", "Size of the mesh in routers.", metavar="COLUMNSxROWS")
    rate: float = option(0.1, "Offered load in flits/node/cycle, up to 1.", metavar="LOAD")
    packet_flits: int = option(5, "Length of every packet, header flit included.", flag="--flits", metavar="FLITS")
    cycles: int = option(100_000, "Warm-up and measurement together.", metavar="CYCLES")
    warmup_cycles: int | None = option(
        None, "Cycles before the measurement; default a fifth of --cycles.", flag="--warmup", metavar="CYCLES"
    )
    seed: int = option(1, "Of the random numbers.", metavar="NUMBER")
    fifo_flits: int = option(7, "Depth of each router's output FIFOs.", flag="--fifo", metavar="FLITS")
    reservation_flits: int = option(
        5, "Free places a multicast head needs in every FIFO it forks into.", flag="--reservation", metavar="FLITS"
    )
    hot_node: int | None = option(None, "hotspot: the hot node; default the one in the middle.", metavar="NODE")
    hot_share: float = option(0.2, "hotspot: share of packets that go there.", metavar="SHARE")
    destinations: int = option(4, "multicast: destinations of each packet.", metavar="NODES")
    sweep: str | None = option(
        None, "Run at each of these loads and draw the latency curve.", metavar="FIRST:LAST:STEP"
    )
    output: str | None = option(
        None, "Picture of the sweep; the table goes beside it (.csv).", flag="--output,-o", metavar="FILE"
    )
    json_file: str | None = option(None, "Write the result as JSON (- prints it).", flag="--json", metavar="FILE")
    heat: str | None = option(None, HEAT_HELP, metavar="FILE")


_OF_TRAFFIC = ("packet_flits", "cycles", "warmup_cycles", "seed", "fifo_flits", "reservation_flits")


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.command("replay-packets")(replay_command)
    app.command("traffic")(traffic_command)


def replay_command(
    packets: Annotated[str, typer.Argument(metavar="PACKETS.csv", help="Packets file.")],
    mesh: Mesh,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Deliveries file to write.")],
    fifo: Fifo = 7,
    reservation: Reservation = 5,
    heat: Heat = None,
) -> None:
    """Send the packets of a file through the mesh; when each head and tail flit entered and left, to the cycle.

    PACKETS.csv has the columns packet, kind (u unicast, m multicast), src, dsts (separated by blanks), inject_cycle
    (first cycle in which the head flit may enter) and n_flits (header included), in any order of columns; a byte-order
    mark, CRLF, blanks, blank lines and trailing commas do no harm. Endpoints: row * columns + column for the local
    ports, then the edge ports clockwise from the north-west. Each source sends its packets in the order of the file.

    The deliveries file has the columns packet, dst, head_in, tail_in, head_out, tail_out, ordered by packet and dst;
    -1 stands for what never happened. Files of any length need the same memory as long as packet numbers and
    inject_cycle ascend.

    A deadlock (nothing moves at any source or destination for 20000 cycles) ends the run with exit code 1; the
    deliveries so far are written, and the packets that wait for each other are printed with the links they hold.
    Multicasts longer than the reservation can deadlock, which is said before the run; with a reservation above the FIFO
    depth no multicast ever starts, which is refused.
    """
    from nocsim.mesh.heat import LinkHeat
    from nocsim.mesh.topology import Topology
    from nocsim.traffic.replay import replay_packets_file

    topology = Topology(*_mesh(mesh))
    _check_router(fifo, reservation)
    if heat is not None:
        check_heat_option(heat, {"PACKETS.csv": packets, "--output": output})
    check_output("--output", output, {"PACKETS.csv": packets})

    def check(scan: Scan) -> None:
        if scan.first_multicast_row is not None and reservation > fifo:
            raise InputError(
                f"no multicast could ever start with FIFOs of {fifo} flits (row {scan.first_multicast_row} of "
                f"{packets} is one)",
                source="--reservation",
                value=reservation,
                allowed=f"1..{fifo}",
            )
        if scan.longest_multicast_flits > reservation:
            _warn(
                f"{packets} has multicasts of up to {scan.longest_multicast_flits} flits, more than the reservation "
                f"of {reservation}: the mesh can deadlock"
            )

    summary = replay_packets_file(packets, output, topology.columns, topology.rows, fifo, reservation, check=check)
    lines = [
        f"{summary.n_packets:,} packets, {summary.n_delivered:,} of {summary.n_deliveries:,} deliveries, "
        f"last movement in cycle {summary.end_cycle:,}",
    ]
    if summary.n_delivered:
        lines.append(
            f"mean latency {summary.mean_latency_cycles:.2f} cycles from the head's entry to the tail's ejection"
        )
    lines.append(f"written to {output}")
    if heat is not None:
        title = f"{Path(packets).name} on a {topology.columns}x{topology.rows} mesh, {summary.end_cycle + 1:,} cycles"
        LinkHeat(topology, summary.link_flits, summary.end_cycle + 1).save(heat, title=title)
        lines.append(f"link heat written to {heat}")
    if summary.deadlock is not None:
        lines += ["", *summary.deadlock.lines()]
    _report(lines, output)
    if summary.deadlock is not None:
        from nocsim.errors import SimulationError

        missing = f"{summary.n_deliveries - summary.n_delivered} of {summary.n_deliveries} deliveries never happen"
        raise SimulationError(f"deadlock after cycle {summary.deadlock.cycle}: {missing}")


@takes(HowToLoad)
def traffic_command(given: Given) -> None:
    """Load the mesh with synthetic traffic: offered and accepted load, latency, hops, link load.

    Every local endpoint creates packets at random (a Bernoulli process of rate LOAD / FLITS packets a cycle) and queues
    them without limit. Latency counts from a packet's creation to the ejection of its tail flit, so waiting at the
    source is included; the network latency counts from the entry of the head flit. The warm-up is not measured.
    After the measurement traffic goes on until every measured packet has arrived.

    The network is called saturated if a source's queue grew during the measurement by more than the noise of what it
    creates (four standard deviations), if all queues together grew steadily by more than 1 % of the packets created, or
    if measured packets had not arrived after as many further cycles as were measured. The same seed gives the same
    result.

    Patterns: uniform (any other node), transpose (square meshes), bitcomp (node n-1-i), bitrev and shuffle (a power of
    two of nodes), tornado (half a row to the east, less one), neighbor (one to the east), hotspot, multicast (random
    sets of nodes). Loads count flits at the source, a multicast once.

    --booksim reads a configuration of BookSim 2; options given beside it count in its place. What would change the
    result and is not modelled here (a torus, virtual channels, other routes) is refused by key.

    --sweep writes a picture and a table: --output curve.png gives curve.png and curve.csv, default
    PATTERN_MESH.png and .csv.
    """
    from nocsim.mesh.topology import Topology
    from nocsim.traffic.patterns import Pattern
    from nocsim.traffic.report import text
    from nocsim.traffic.synthetic import SyntheticTraffic

    how = _with_booksim(given)
    if how.pattern is None:
        raise InputError("missing", source="--pattern", allowed=str(HowToLoad.model_fields["pattern"].description))
    topology = Topology(*_mesh(how.mesh))
    _check_router(how.fifo_flits, how.reservation_flits)
    places: Any = {"hot_node": how.hot_node, "hot_share": how.hot_share, "destinations": how.destinations}
    chosen = Pattern(how.pattern, topology, **places)  # type: ignore[arg-type]
    if chosen.multicast and how.packet_flits > how.reservation_flits:
        _warn(
            f"multicasts of {how.packet_flits} flits are longer than the reservation of {how.reservation_flits}: "
            "the mesh can deadlock"
        )
    if how.json_file not in (None, "-"):
        check_output("--json", how.json_file, {})
    options: dict[str, Any] = {name: getattr(how, name) for name in _OF_TRAFFIC}
    if how.sweep is not None:
        if how.heat is not None:
            message = "a sweep has no single heat picture"
            raise InputError(message, source="--heat", value=how.heat, allowed="without --sweep")
        _sweep(chosen, how.sweep, options, how.output, how.json_file)
        return
    if how.output is not None:
        raise InputError("nothing to draw", source="--output", value=how.output, allowed="together with --sweep")
    if how.heat is not None:
        check_heat_option(how.heat, {})
    traffic = SyntheticTraffic(chosen, how.rate, **options)
    result = traffic.run()
    if how.json_file == "-":
        out(result.to_json())
    else:
        out(text(result))
    if how.json_file not in (None, "-"):
        result.to_file(how.json_file)
        out(f"written to {how.json_file}\n")
    if how.heat is not None:
        title = f"{result.pattern}, {result.mesh} mesh, {result.accepted:.3f} flits/node/cycle accepted"
        traffic.heat.save(how.heat, title=title)
        if how.json_file != "-":
            out(f"link heat written to {how.heat}\n")
    _end_if_deadlocked([result])


def _with_booksim(given: Given) -> HowToLoad:
    """What was given, the rest as a configuration of BookSim says where there is one."""
    how = given.of(HowToLoad)
    if how.booksim is None:
        return how
    from nocsim.traffic.booksim import read_booksim

    options, notes = read_booksim(how.booksim)
    for note in notes:
        print(f"note: {how.booksim}: {note}", file=sys.stderr)
    return HowToLoad.of(options | {name: value for name, value in given.values.items() if value is not None})


def _sweep(pattern: Pattern, rates: str, options: dict[str, Any], output: str | None, json_file: str | None) -> None:
    """Run a pattern at each rate; picture, table, and if wanted the results as JSON."""
    import json

    from cosa.common.files import write_atomic
    from nocsim.result.pictures import PICTURE_ENDINGS
    from nocsim.traffic.report import draw_curve
    from nocsim.traffic.report import table as csv
    from nocsim.traffic.synthetic import sweep, sweep_rates

    name = output or f"{pattern.name}_{pattern.topology.columns}x{pattern.topology.rows}.png"
    ending = Path(name).suffix.lower()
    picture = Path(name) if ending in PICTURE_ENDINGS else Path(name.removesuffix(".csv") + ".png")
    curve = picture.with_suffix(".csv")
    for path in (picture, curve):
        check_output("--output", str(path), {})
    loads = sweep_rates(rates)
    quiet = json_file == "-"
    results: list[TrafficResult] = []
    if not quiet:
        out(_curve())
    for result in sweep(pattern, loads, **options):
        results.append(result)
        if not quiet:
            latency = result.packet_latency
            mean = "-" if latency.mean is None else f"{latency.mean:.2f}"
            p99 = "-" if latency.p99 is None else str(latency.p99)
            note = " deadlocked" if result.deadlocked else " saturated" if result.saturated else ""
            out(_curve(f"{result.rate:g}", f"{result.offered:.4f}", f"{result.accepted:.4f}", mean, p99, note))
    draw_curve(results, picture)
    write_atomic(curve, csv(results))
    if json_file is not None:
        data = {
            "kind": "traffic_sweep",
            "schema_version": 1,
            "results": [result.model_dump(mode="json") for result in results],
        }
        whole = json.dumps(data, indent=2) + "\n"
        if quiet:
            out(whole)
        else:
            write_atomic(json_file, whole)
    if not quiet:
        written = [str(picture), str(curve), *([json_file] if json_file else [])]
        out(f"\n{_knee(results)}\nwritten to {', '.join(written)}\n")
    _end_if_deadlocked(results)


def _curve(*cells: str) -> str:
    """A line of the table, by itself since it is printed as soon as it is known; without cells the head."""
    header = ("rate", "offered", "accepted", "mean latency", "p99", "")
    return table(header, [cells] if cells else [], left=(5,), widths=(6, 8, 9, 13, 9, 0))[-1] + "\n"


def _knee(results: list[TrafficResult]) -> str:
    """Between which loads the network saturates."""
    saturated = [result.rate for result in results if result.saturated]
    most = max(result.accepted for result in results)
    if not saturated:
        return f"not saturated up to a rate of {results[-1].rate:g} flits/node/cycle"
    below = [result.rate for result in results if result.rate < saturated[0]]
    between = (
        f"between rates of {below[-1]:g} and {saturated[0]:g}" if below else f"at or below a rate of {saturated[0]:g}"
    )
    return f"saturates {between} flits/node/cycle; at most {most:.4f} accepted"


def _end_if_deadlocked(results: list[TrafficResult]) -> None:
    if any(result.deadlocked for result in results):
        from nocsim.errors import SimulationError

        raise SimulationError("the mesh deadlocked: multicasts longer than the reservation can wait for each other")


def check_heat_option(path: str, inputs: dict[str, str | None], *, ideal_network: bool = False) -> None:
    """InputError unless --heat names a file that can be written, and there are links to draw."""
    from nocsim.mesh.heat import check_heat_file

    if ideal_network:
        raise InputError(
            "an ideal network has no links", source="--heat", value=path, allowed="without --ideal-network"
        )
    check_heat_file(path)
    check_output("--heat", path, inputs)


def _mesh(text: str) -> tuple[int, int]:
    return parse_mesh(text, source="--mesh")


def _check_router(fifo: int, reservation: int) -> None:
    from nocsim.mesh.kernel import MAX_FIFO_FLITS

    if not 1 <= fifo <= MAX_FIFO_FLITS:
        raise InputError("no such depth", source="--fifo", value=fifo, allowed=f"1..{MAX_FIFO_FLITS} flits")
    if not 1 <= reservation <= 1 << 20:
        raise InputError(
            "no such reservation", source="--reservation", value=reservation, allowed=f"1..{1 << 20} flits"
        )


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _report(lines: list[str], output: str) -> None:
    """Print to standard output, unless the deliveries went there."""
    text = "".join(line + "\n" for line in lines)
    if output in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        sys.stderr.write(text)
    else:
        out(text)
