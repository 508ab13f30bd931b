"""Files of other tools: Timeloop (problem, architecture, constraints, mapping, nests it printed) and SCALE-Sim.

Reading has two steps. A reader keeps what a file says in frozen dataclasses of its own (`timeloop_model`, `scalesim`);
`nouns` then turns that into a layer, an architecture or a schedule. So a file that says more than the nouns can hold is
still read in full, and what cannot be turned is an error that names it.
"""
