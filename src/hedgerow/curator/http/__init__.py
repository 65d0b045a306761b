"""The curator over HTTP: analysts ask, owners decide, and nothing is answered that was not paid for."""
