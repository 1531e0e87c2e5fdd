"""`python -m planforge.testing.rehearsal [SCRIPT.json]`"""

import sys

from planforge.testing.rehearsal import main

sys.exit(main())
