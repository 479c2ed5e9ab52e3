import sys

from keystride.commands.main import main

sys.exit(main())
