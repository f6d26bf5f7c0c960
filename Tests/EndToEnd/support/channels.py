"""Private channels: policies on realtime.messages that look into a table, so that a test gives rights by rows."""

import contextlib

INSTALL = """
    create table public.channel_rights (topic text, who text, extension text, command text);
    grant select on public.channel_rights to public;
    create policy rights_read on realtime.messages for select using (exists (
        select from public.channel_rights r where r.topic = realtime.topic() and r.extension = messages.extension
            and r.command = 'read' and r.who = current_setting('request.jwt.claim.sub')));
    create policy rights_write on realtime.messages for insert with check (exists (
        select from public.channel_rights r where r.topic = realtime.topic() and r.extension = messages.extension
            and r.command = 'write' and r.who = current_setting('request.jwt.claim.sub')));
"""


@contextlib.contextmanager
def installed_policies(hub, cluster, database="shared"):
    """The policies, as long as a module's tests need them. A hub answers by a version of the policies up to 250 ms old: the barrier makes
    it look again."""
    with cluster.connect(database) as connection:
        connection.execute(INSTALL)
        hub.settle()
        yield
        connection.execute("drop table public.channel_rights cascade")
        hub.settle()


class Rights:
    def __init__(self, connection, topic):
        self.connection, self.topic = connection, topic

    def give(self, who, *rights, topic=None):
        """Rights like "read broadcast"; all four if none is named."""
        for right in rights or ("read broadcast", "read presence", "write broadcast", "write presence"):
            command, extension = right.split()
            self.connection.execute(
                "insert into public.channel_rights values (%s, %s, %s, %s)",
                [topic or self.topic, who, extension, command])
        return self

    def take(self, who):
        self.connection.execute("delete from public.channel_rights where topic = %s and who = %s", [self.topic, who])
