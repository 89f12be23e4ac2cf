"""The application of all commands; an error becomes one line on stderr and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import pliant
from pliant.cli.bench import bench
from pliant.cli.compare import compare
from pliant.cli.demo import demo
from pliant.cli.gallery import gallery
from pliant.cli.info import info
from pliant.cli.map import map_
from pliant.cli.output import say
from pliant.cli.reduce import reduce
from pliant.cli.run import run
from pliant.cli.sweep import sweep
from pliant.cli.view import view
from pliant.cli.warm_up import warm_up
from pliant.errors import PliantError

__all__ = ["app"]

# typer contains its parser under a private name; the base class of its errors is found through a public subclass.
UsageProblem: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Commands(TyperGroup):
    """A group of commands that turns errors of input into one line instead of a traceback."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:  # while the parser imports modules
            say("interrupted")
            raise typer.Exit(130) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(130) from None
        except PliantError as error:
            say(f"error: {error}")
        except BrokenPipeError:
            raise  # `pliant gallery | head`: the reader has ended
        except OSError as error:
            where = f"'{error.filename}': " if error.filename else ""
            say(f"error: {where}{error.strerror or error}")
        except MemoryError:
            say("error: there is not enough memory for this")
        raise typer.Exit(1)

    def main(
        self, args: Any = None, prog_name: str | None = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        try:
            code = super().main(args, prog_name, standalone_mode=False, **extra)
        except UsageProblem as error:
            command = error.ctx.command_path if getattr(error, "ctx", None) else "pliant"
            say(f"error: {error.format_message()} (see '{command} --help')")
            code = error.exit_code
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        warnings.simplefilter("default", pliant.errors.PliantWarning)
        yield


def _version(asked: bool) -> None:
    if asked:
        print(f"pliant {pliant.__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    name="pliant",
    rich_markup_mode=None,  # rich help takes twice as long to appear
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and exit.")
    ] = False,
) -> None:
    """Compliant articulated mechanisms: rigid links, springy joints, closed loops.

    A mechanism is an MJCF, URDF or pliant file, a saved model, or `gallery:NAME`. Start with `pliant demo`, or with
    `pliant reduce gallery:hand`.

    Exit codes: 0 fine, 1 error, 2 wrong usage, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (demo, gallery, info, reduce, run, map_, compare, sweep, view, bench, warm_up):
    app.command(command.__name__.rstrip("_").replace("_", "-"))(command)
