"""The kinds of workload, one class each behind `control.jobs.kind.Kind`; control decides for those in this list."""

from pliant.control.jobs.kind import Kinds
from pliant.control.kinds.elastic.kind import Elastic
from pliant.control.kinds.endpoint.kind import Serving
from pliant.control.kinds.fixed import Fixed

KINDS = Kinds(Serving(), Fixed(), Elastic())
