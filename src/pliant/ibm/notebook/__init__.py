"""Elastic notebooks: `FabricModel` as a kernel has it, whose `train` takes slots of a server for as long as it runs.

Theory of operation. A notebook holds a model, an optimizer and functions that were typed into its cells. `train` writes
them into a folder (`shipment`), sends that as the code of a job like any other, shows how far it is (`follow`), and
loads what the job has trained back into the notebook's own model and optimizer:

    In [3]: fabric = FabricModel(model, datasets, F.cross_entropy, optimizer)
    In [4]: fabric.train(5, 32, 4)
            job-7 is submitted: 5 epochs on 1 to 4 slots of http://127.0.0.1:8265
            job-7 is running on 4 slots: epoch 3/5, loss 0.214
            Job job-7 finishes with state FINISHED.
    In [5]: model(images)          # trained

The kernel holds no slot, before, during or after it. In a task, where IBM's modules come first on the path,
`FabricModel` is that of `pliant.ibm.modules`; this one is found wherever Pliant is installed, and trains here and by
itself if it is not used in a kernel, or if no server is known.

Functions and classes of a notebook have no file, so they travel as cloudpickle writes them, by value. Nobody but the
job's own tasks reads that, within its walls: to the server it is a file among others.
"""

import sys
from pathlib import Path
from typing import Final

import pliant.ibm.modules
from pliant.ibm.notebook.model import FabricModel
from pliant.integrations.tensorflow_names import offer

__all__ = ["FabricModel"]

_MODULES: Final = str(Path(pliant.ibm.modules.__file__).parent)
if _MODULES not in sys.path:
    sys.path.append(_MODULES)  # `callbacks`, `emetrics` and kin, for notebooks and scripts that have no copies
offer()
