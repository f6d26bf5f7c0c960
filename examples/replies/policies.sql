-- Everybody reads the replies to their own questions, and nobody else's: stream:answer/USER and stream:voice/USER.
create policy "their own replies" on realtime.messages for select to authenticated using (
    extension = 'broadcast' and realtime.topic() in ('stream:answer/' || auth.uid(), 'stream:voice/' || auth.uid()));
