"""`python -m kafkalite`: the same command without a console script on the path."""

from kafkalite.cli.main import main

if __name__ == "__main__":
    main()
