"""The task's end of the control link."""
