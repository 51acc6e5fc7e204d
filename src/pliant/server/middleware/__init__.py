"""What every request passes: authentication, authorisation, the limit of its size, the audit log, problems."""
