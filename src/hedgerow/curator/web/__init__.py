"""Pages for people: the same service in HTML, with forms and no scripts."""
