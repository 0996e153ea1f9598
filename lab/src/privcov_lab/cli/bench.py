"""``privcov bench``: accuracy and speed, as ratios against a floor measured in the same run."""

from __future__ import annotations

import click

from privcov.cli.output import counting, json_option, one_thread, print_json, say


@click.group(name="bench")
def command() -> None:
    """Measure accuracy and speed as ratios against a floor measured in the same run, on one thread.

    Example: privcov bench noise --quick
    """
    one_thread()


@command.command(name="noise")
@click.option("--quick", is_flag=True, help="Small dimensions only.")
@json_option
def noise(quick: bool, as_json: bool) -> None:
    """CPU time of one noise draw, exact and idealized, as a ratio to one eigendecomposition.

    Example: privcov bench noise --quick --json
    """
    from privcov_lab.bench import noise as bench

    dimensions = (20, 108) if quick else (20, 108, 400, 784)
    with counting(len(dimensions), "drawing") as step:
        result = bench.run(dimensions=dimensions, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="gram")
@click.option(
    "--rows",
    default=10_000_000,
    show_default=True,
    type=click.IntRange(1000, 10**9),
    help="Rows of the table.",
)
@click.option(
    "--columns",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Columns of the table; the part strata always takes 3, 5, 10, 20 and 40.",
)
@click.option(
    "--part", "parts", multiple=True, default=("parquet",), show_default=True,
    type=click.Choice(
        ["parquet", "memory", "csv", "workers", "engines", "wide", "growth", "derived", "strata", "all"]
    ),
    help="What to measure; may be repeated.",
)  # fmt: skip
@click.option(
    "--largest", default=10_000_000, show_default=True, help="The rows up to which growth is followed."
)
@click.option("--quick", is_flag=True, help="500,000 rows.")
@json_option
def gram(rows: int, columns: int, parts: tuple[str, ...], largest: int, quick: bool, as_json: bool) -> None:
    """CPU time and memory of files to Gram matrix, as ratios to decode + clip + BLAS; workers; growth.

    Example: privcov bench gram --quick --part parquet --part workers
    """
    from privcov_lab.bench import gram as bench
    from privcov_lab.bench.scaling import render

    chosen = bench.PARTS if "all" in parts else parts
    rows, largest = (500_000, 10**6) if quick else (rows, largest)
    result = bench.run(rows=rows, columns=columns, parts=chosen, largest=largest)
    print_json(result) if as_json else say(render(result))


@command.command(name="strata")
@click.option("--runs", default=40, show_default=True, type=click.IntRange(2), help="Releases at each share.")
@json_option
def strata(runs: int, as_json: bool) -> None:
    """Error of fifty equal strata and of their total, at several shares of the loss for the total.

    Beside a release of the rows of a stratum alone, and of the whole table alone; epsilon = 1 under add-remove.

    Example: privcov bench strata --runs 10
    """
    from privcov_lab.bench import strata as bench

    with counting(bench.STEPS, "releasing") as step:
        result = bench.run(runs=runs, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="utility")
@click.option("--data", "directory", required=True, help="Directory with wine, airfoil and adult.")
@click.option("--quick", is_flag=True, help="5 runs instead of 50.")
@click.option(
    "--guess", is_flag=True, help="Covariances of wine, with and without what bounds guess; 60 runs."
)
@json_option
def utility(directory: str, quick: bool, guess: bool, as_json: bool) -> None:
    """Error of a repaired symmetric-wishart release on the papers' tables, beside zero and the oracle.

    Example: privcov bench utility --data ../shared/data --quick
    """
    from privcov_lab.bench import utility as bench

    if guess:
        with counting(16, "releasing") as step:
            result = bench.guess(directory, runs=5 if quick else 60, step=step)
        print_json(result) if as_json else say(bench.render_guess(result))
        return
    with counting(21, "releasing") as step:
        result = bench.run(directory, runs=5 if quick else 50, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="exhaustive")
@click.option("--data", "directory", required=True, help="Directory with adult.")
@click.option(
    "--loss", "losses", multiple=True, type=click.Choice(["pure", "approximate"]), default=("pure", "approximate"),
    show_default=True, help="The kind of loss, each under both neighbours; may be repeated.",
)  # fmt: skip
@click.option(
    "--runs", default=10, show_default=True, type=click.IntRange(2), help="Releases of each schema."
)
@json_option
def exhaustive(directory: str, losses: tuple[str, ...], runs: int, as_json: bool) -> None:
    """Errors and intervals with levels declared exhaustive, against plain ones and a level dropped by hand.

    Example: privcov bench exhaustive --data ../shared/data --loss approximate --runs 10
    """
    from privcov_lab.bench import exhaustive as bench

    chosen = [word for word in bench.LOSSES if word.partition(",")[0] in losses]
    with counting(len(chosen) * len(bench.KINDS) * runs, "releasing") as step:
        result = bench.run(directory, runs=runs, losses=chosen, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="eigenvectors")
@click.option("--quick", is_flag=True, help="Fewer and smaller dimensions; under 50 s.")
@click.option("--peers", "peers_path", help="JSON written by lab/peers/time_peers.py.  [default: no peers]")
@json_option
def eigenvectors(quick: bool, peers_path: str | None, as_json: bool) -> None:
    """CPU time of a chain of eigenvectors, as a ratio to one eigendecomposition of the same size.

    Example: privcov bench eigenvectors --quick --json
    """
    from privcov_lab.bench import eigenvectors as bench

    with counting(5 + (not quick), "drawing") as step:
        result = bench.run(quick=quick, peers=peers_path, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="inference")
@click.option(
    "--quick", is_flag=True, help="100 simulated tables instead of 1,000, or of 4,000 with --tails."
)
@click.option(
    "--spread", default=1.0, show_default=True, type=click.FloatRange(0.05, 1), help="x is within ±this."
)
@click.option(
    "--tails",
    is_flag=True,
    help="Instead: how often slopes that are zero are called significant, at 5 to 0.1 %.",
)
@json_option
def inference(quick: bool, spread: float, tails: bool, as_json: bool) -> None:
    """Coverage of 95 % regression intervals on simulated tables, the naive table's beside it.

    Example: privcov bench inference --quick
    """
    from privcov_lab.bench import inference as bench

    if tails:
        with counting(2 * len(bench.TAILS), "simulating") as step:
            result = bench.tails(tables=100 if quick else 4000, spread=spread, step=step)
        print_json(result) if as_json else say(bench.render_tails(result))
        return
    with counting(8, "simulating") as step:
        result = bench.run(tables=100 if quick else 1000, spread=spread, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="honesty")
@click.option("--quick", is_flag=True, help="Twelve cells of 40 tables instead of all.")
@click.option(
    "--tables", default=400, show_default=True, type=click.IntRange(20), help="Simulated tables a cell."
)
@click.option("--design", "designs", multiple=True, help="Only this design; may be repeated.  [default: all]")
@json_option
def honesty(quick: bool, tables: int, designs: tuple[str, ...], as_json: bool) -> None:
    """Every interval, ±, p-value, planned error and verdict on designs that nobody tuned for.

    Prints coverage with its standard error, widths over an oracle's, and for each cell whether it is as said; where
    assumptions fail, whether the output says so.

    Example: privcov bench honesty --quick
    """
    from privcov_lab.bench import honesty as bench

    if unknown := sorted(set(designs) - set(bench.DESIGNS)):
        known = ", ".join(repr(name) for name in bench.DESIGNS)
        raise click.UsageError(f"there is no design {unknown[0]!r}. There are {known}.")
    cells = bench.QUICK if quick else bench.CELLS
    cells = tuple(cell for cell in cells if not designs or cell[0] in designs)
    with counting(len(cells), "simulating") as step:
        result = bench.run(cells=cells, tables=40 if quick else tables, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="ridge")
@click.option("--data", "directory", required=True, help="Directory with wine, airfoil and adult.")
@click.option("--quick", is_flag=True, help="2 runs instead of 10.")
@json_option
def ridge(directory: str, quick: bool, as_json: bool) -> None:
    """Ridge for every column of the papers' tables as the target, against the fit without noise.

    Example: privcov bench ridge --data ../shared/data --quick
    """
    from privcov_lab.bench import ridge as bench

    with counting(21, "fitting") as step:
        result = bench.run(directory, runs=2 if quick else 10, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="pums")
@click.option("--data", "directory", required=True, help="Directory with pums_california_10000.csv.gz.")
@json_option
def pums(directory: str, as_json: bool) -> None:
    """The regression income ~ age + educ on census rows: released at epsilon 1, and without noise.

    Example: privcov bench pums --data ../shared/data
    """
    from privcov_lab.bench import pums as bench

    result = bench.run(directory)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="choice")
@click.option("--data", "directory", required=True, help="Directory with wine, airfoil and adult.")
@click.option("--quick", is_flag=True, help="Wine and airfoil, 5 runs.")
@json_option
def choice(directory: str, quick: bool, as_json: bool) -> None:
    """Measured error of every mechanism on the papers' tables, beside the one that auto takes.

    Example: privcov bench choice --data ../shared/data --quick
    """
    from privcov_lab.bench import choice as bench

    datasets = ("wine", "airfoil") if quick else ("wine", "airfoil", "adult")
    runs = dict.fromkeys(datasets, 5) if quick else None
    with counting(14 * len(datasets), "releasing") as step:
        result = bench.run(directory, datasets=datasets, runs=runs, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="frame")
@click.option(
    "--data", "directory", required=True, help="Directory with adult, pums, airfoil, wine and covtype."
)
@click.option(
    "--part", "parts", multiple=True, default=("points",), show_default=True,
    type=click.Choice(["points", "wide", "means", "coverage", "unasked", "cost", "all"]),
    help="What to measure; may be repeated.",
)  # fmt: skip
@click.option("--table", "tables", multiple=True, help="Only this table; may be repeated.  [default: all]")
@click.option("--runs", default=30, show_default=True, type=click.IntRange(1), help="Releases at each point.")
@click.option(
    "--rows",
    default=5_000_000,
    show_default=True,
    type=click.IntRange(1000),
    help="Rows read for --part cost.",
)
@click.option("--quick", is_flag=True, help="Wine and airfoil, 3 runs; 200,000 rows for --part cost.")
@json_option
def frame(
    directory: str,
    parts: tuple[str, ...],
    tables: tuple[str, ...],
    runs: int,
    rows: int,
    quick: bool,
    as_json: bool,
) -> None:
    """Errors of releases on real tables with guessed bounds: as declared, with a private frame, and in hindsight.

    With --part wide the bounds are ten and a hundred times as wide; means sets means beside noise on sums alone;
    coverage is how often intervals of slopes hold those of the whole table, also on three designs that no constant was
    set on; unasked sets the declared frame beside auto, and auto with a cut that is counted, at epsilon 1; cost is the
    CPU time of a framed release over a declared one.

    Example: privcov bench frame --data ../shared/data --quick --part points --part means
    """
    from privcov_lab.bench import frame as bench
    from privcov_lab.bench.bounds import RECIPES
    from privcov_lab.bench.frame_words import render

    if unknown := set(tables) - set(RECIPES):
        raise click.BadParameter(f"there is no table {min(unknown)}; there are {', '.join(RECIPES)}.")
    chosen = bench.PARTS if "all" in parts else parts
    taken = tables or (("wine", "airfoil") if quick else tuple(RECIPES))
    runs, rows = (min(runs, 3), min(rows, 200_000)) if quick else (runs, rows)
    designs = 6 * 3 * ("coverage" in chosen) + 2 * (3 + len(taken)) * ("unasked" in chosen)
    steps = 6 * len(taken) * len({*chosen} - {"cost", "unasked"}) + designs + ("cost" in chosen)
    with counting(steps, "releasing") as step:
        result = bench.run(directory, parts=chosen, tables=taken, runs=runs, rows=rows, step=step)
    print_json(result) if as_json else say(render(result))


@command.command(name="forecast")
@click.option("--quick", is_flag=True, help="Small dimensions and few runs.")
@json_option
def forecast(quick: bool, as_json: bool) -> None:
    """Measured error over predicted error for every mechanism, dimension and budget.

    Example: privcov bench forecast --quick
    """
    from privcov_lab.bench import forecast as bench

    dimensions = (2, 6) if quick else bench.DIMENSIONS
    with counting(6 * len(dimensions), "measuring") as step:
        result = bench.run(dimensions=dimensions, runs=300 if quick else 2000, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="reliability")
@click.option("--quick", is_flag=True, help="A tenth of everything, and two cases of each attack.")
@click.option(
    "--seed", default=1, show_default=True, help="The seed of the damage and of the moments of the kills."
)
@json_option
def reliability(quick: bool, seed: int, as_json: bool) -> int:
    """Count faults under attack, and want none.

    The attacks: races for a budget, releases killed with SIGKILL, full disks, hostile files, attacks that once
    succeeded. The exit code is 4 where there is a fault. Who attacks: docs/explain/threats.md.

    Example: privcov bench reliability --quick
    """
    from privcov.cli import main
    from privcov_lab.bench import reliability as bench

    with counting(bench.PARTS, "breaking things") as step:
        result = bench.run(
            main,
            spends=25 if quick else 250,
            kills=20 if quick else 200,
            inputs=1000 if quick else 10_000,
            cases=2 if quick else None,
            seed=seed,
            step=step,
        )
    print_json(result) if as_json else say(bench.render(result))
    return 4 if result["faults"] else 0


@command.command(name="device")
@click.option(
    "--device", default="cuda", show_default=True, help="cuda, cuda:N, or torch: PyTorch on this processor."
)
@click.option("--rows", default=200_000, show_default=True, type=click.IntRange(1), help="Rows of the table.")
@click.option(
    "--columns", default=8192, show_default=True, type=click.IntRange(2, 20_000), help="Columns of the table."
)
@click.option(
    "--compare", default=16_384, show_default=True, type=click.IntRange(1), help="Rows compared with NumPy."
)
@click.option(
    "--part",
    type=click.Choice(["sum", "eigenvectors"]),
    default="sum",
    show_default=True,
    help="The Gram matrix, or eigenvectors sampled there and here.",
)
@click.option(
    "--rank", default=0, type=click.IntRange(0), show_default=True, help="How many eigenvectors; 0 takes all."
)
@json_option
def device(device: str, rows: int, columns: int, compare: int, part: str, rank: int, as_json: bool) -> None:
    """A wide table's Gram matrix on a GPU: rate against its float64 matrix product, bits against NumPy.

    With --part eigenvectors, the time to sample eigenvectors there and here from the same random words.

    Example: privcov bench device --device torch --rows 20000 --columns 600
    """
    from privcov_lab.bench import device as bench

    if part == "eigenvectors":
        with counting(2, "sampling") as step:
            found = bench.run_eigenvectors(
                device=device, dimension=columns, rank=min(rank, columns), step=step
            )
        print_json(found) if as_json else say(bench.render_eigenvectors(found))
        return
    with counting(6, "computing") as step:
        result = bench.run(device=device, rows=rows, dimension=columns, compared_rows=compare, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="components")
@click.option("--tables", default=100, show_default=True, type=click.IntRange(5), help="Tables a line.")
@click.option("--design", "designs", multiple=True, help="Only this design; may be repeated.  [default: all]")
@json_option
def components(tables: int, designs: tuple[str, ...], as_json: bool) -> None:
    """Coverage and width of intervals of principal components, as with normal columns and conservative ones.

    Example: privcov bench components --tables 20
    """
    from privcov_lab.bench import components as bench

    cells = tuple(cell for cell in bench.CELLS if not designs or cell[0] in designs)
    with counting(len(cells), "releasing") as step:
        result = bench.run(tables=tables, cells=cells, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="speed")
@click.option(
    "--columns", default=100, show_default=True, type=click.IntRange(2, 1000), help="Columns of the table."
)
@click.option("--quick", is_flag=True, help="Each command once instead of three times.")
@json_option
def speed(columns: int, quick: bool, as_json: bool) -> None:
    """CPU seconds of plan, ols, pca and report as people call them, each beside its limit.

    Example: privcov bench speed --quick
    """
    from privcov_lab.bench import speed as bench

    with counting(bench.STEPS, "measuring") as step:
        result = bench.run(columns=columns, runs=1 if quick else 3, step=step)
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="wide")
@click.option(
    "--columns",
    type=click.IntRange(2, 20_000),
    help="Columns of the table.  [default: 8192; with --part repairs 1448]",
)
@click.option("--rows", default=2_000, show_default=True, type=click.IntRange(1), help="Rows of the table.")
@click.option("--mechanism", default="gaussian", show_default=True, help="One that reaches so many columns.")
@click.option(
    "--part",
    type=click.Choice(["steps", "repairs"]),
    default="steps",
    show_default=True,
    help="Time from array to file, or the error of repairs.",
)
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:N or torch.")
@click.option("--repair", is_flag=True, help="Repair the release too: minutes, at thousands of columns.")
@click.option("--quick", is_flag=True, help="1,500 columns, 500 rows.")
@json_option
def wide(
    columns: int | None,
    rows: int,
    mechanism: str,
    part: str,
    device: str,
    repair: bool,
    quick: bool,
    as_json: bool,
) -> None:
    """A release of thousands of columns from array to file and back: seconds, memory, bytes, each beside a floor.

    Example: privcov bench wide --quick --repair
    """
    from privcov_lab.bench import wide as bench

    if part == "repairs":
        with counting(12, "repairing") as step:
            found = bench.compare_repairs(columns=200 if quick else columns or 1448, device=device, step=step)
        print_json(found) if as_json else say(bench.render_repairs(found))
        return
    columns, rows = (1500, 500) if quick else (columns or 8192, rows)
    with counting(9 if repair else 7, "working") as step:
        result = bench.run(
            columns=columns, rows=rows, mechanism=mechanism, device=device, repaired=repair, step=step
        )
    print_json(result) if as_json else say(bench.render(result))


@command.command(name="timing")
@click.option(
    "--rows", default=200_000, show_default=True, type=click.IntRange(10, 10**8), help="Rows of each table."
)
@click.option("--runs", default=25, show_default=True, type=click.IntRange(2), help="Runs of each table.")
@click.option(
    "--reader", "readers", multiple=True,
    type=click.Choice(["CSV", "CSV constant", "CSV.gz", "Parquet", "NumPy", "pandas", "polars"]),
    help="Only this reader; may be repeated.  [default: all]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="20,000 rows, 5 runs.")
@json_option
def timing(rows: int, runs: int, readers: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """How well an observer of CPU time or memory tells that one row is odd, for every reader: area under the curve.

    Example: privcov bench timing --quick --reader CSV --reader "CSV constant"
    """
    from privcov_lab.bench import timing as bench

    rows, runs = (min(rows, 20_000), min(runs, 5)) if quick else (rows, runs)
    chosen = readers or tuple(bench.READERS)
    with counting(len(chosen), "reading") as step:
        result = bench.run(rows=rows, runs=runs, readers=chosen, step=step)
    print_json(result) if as_json else say(bench.render(result))
