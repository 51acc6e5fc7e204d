"""Messages when jobs end: webhooks and e-mail, kept before they are sent. Knows no scheduler and no SQL."""
