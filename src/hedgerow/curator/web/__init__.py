"""The web pages: the same service in HTML, with forms and no scripts."""
