"""`python -m planforge` is the `planforge` command."""

from planforge.interfaces.cli.main import run

if __name__ == "__main__":
    run()
