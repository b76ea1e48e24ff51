"""Screens laid over the conversation: approvals, pickers, pagers, help."""
