"""How many streams a connection may have open: one until somebody is known, many after that, fewer after a refusal."""


class StreamLimit:
    """APNs raises SETTINGS_MAX_CONCURRENT_STREAMS when the first request with a good provider token is answered, and may
    lower it again."""

    #: Good pushes in a row after which a lowered limit is raised again.
    TRUST = 10

    def __init__(self, first, most):
        self.first, self.most, self.current = first, most, first
        self._is_known, self._good = False, 0

    def after(self, status):
        """The new limit if an answer with this status changes it, else None."""
        before = self.current
        if status == 403:
            self._is_known, self.current = False, self.first
        elif not self._is_known:
            self._is_known, self.current = True, self.most
        elif 400 <= status < 500 and status != 410:
            self.current, self._good = max(1, self.current // 2), 0
        elif status < 300:
            self._good += 1
            if self._good >= self.TRUST:
                self.current = self.most
        return None if self.current == before else self.current
