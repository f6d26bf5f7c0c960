import Testing

/// One Postgres serves all suites, on a machine with few cores: one test after the other, so that times mean something.
@Suite(.serialized) struct CommandTests {}
