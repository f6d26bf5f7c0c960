"""A request as it comes in."""


class Request:
    def __init__(self, connection, stream, number, headers):
        self.connection, self.stream, self.number = connection, stream, number
        self.headers, self.duplicates, self.chunks = {}, set(), []
        for name, value in headers:
            if name in self.headers:
                self.duplicates.add(name)
            self.headers[name] = value
        self.method, self.path = self.headers.get(":method", ""), self.headers.get(":path", "")
        self.facts = {}  # what is known of it: token or channel, payload
        self.record = None  # its line in the log
        self.is_over = False  # answered, reset or never to be answered

    @property
    def body(self):
        return b"".join(self.chunks)

    @property
    def shown_path(self):
        return self.path[:60]
