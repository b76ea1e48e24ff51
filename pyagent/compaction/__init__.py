"""The context pipeline: layers that keep a conversation inside the model's window, the lightest first."""

from pyagent.compaction.context import ModelLimits, PipelineContext
from pyagent.compaction.pipeline import Pipeline, PipelineResult
from pyagent.compaction.ports import Ports

__all__ = ["ModelLimits", "Pipeline", "PipelineContext", "PipelineResult", "Ports"]
