"""A model behind a URL: the OpenAI API as a client sees it. `httpx` is imported when a connection is opened."""
