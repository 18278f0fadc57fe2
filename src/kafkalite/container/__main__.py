"""`python -m kafkalite.container ROOT`: writes the files of the image below ROOT."""

import sys

from kafkalite.container.tree import write_tree

if __name__ == "__main__":
    write_tree(sys.argv[1])
