"""Imported by the zygote: what the first step of an optimizer does once in a process is done here, for all its tasks.

Every optimizer marks its step for the profiler. The first mark imports a module of torch and looks operators up by
their names: 2 ms of a processor, which a task that joins a training takes while others wait for it. More would do harm:

- with the first tensor in main memory torch reads whether large ones lie in large pages, with the first layer MKL and
  oneDNN read their variables, and never again: a job's own would come too late
- a random number would be missing in a script without a seed
- for gradients torch may start threads, which no child would have
- where torch is built for GPUs an optimizer looks for them, and a process that has done so has no children that can use
  them: there not even the mark is made
"""

import torch

if not any((torch.version.cuda, torch.version.hip, torch.version.xpu)):
    with torch.autograd.profiler.record_function("rehearsal"):
        pass
