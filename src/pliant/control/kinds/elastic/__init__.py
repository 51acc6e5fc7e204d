"""Elastic trainings: the server forms their generations, and their tasks come and go while they train."""
