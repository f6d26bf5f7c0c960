-- People, conversations and a little history for the demo. Needs chat.sql; safe to run any number of times: every row
-- has a fixed key (messages: sender and local_id), and what exists is left as it is.
--
--   Ada 11111111-...   Grace 22222222-...   Linus 33333333-...   Margaret 44444444-...   Katherine 55555555-...
--   Assistant aaaaaaaa-..., who writes replies (assistant.sql) and is in no conversation
--
-- Ada is not in "Compiler corner": open it as Grace, and see that nothing of it reaches Ada.

insert into public.users (id, name, avatar_color) values
    ('11111111-1111-4111-8111-111111111111', 'Ada', '#7c3aed'),
    ('22222222-2222-4222-8222-222222222222', 'Grace', '#0369a1'),
    ('33333333-3333-4333-8333-333333333333', 'Linus', '#b45309'),
    ('44444444-4444-4444-8444-444444444444', 'Margaret', '#be185d'),
    ('55555555-5555-4555-8555-555555555555', 'Katherine', '#15803d'),
    ('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'Assistant', '#0f766e')
on conflict do nothing;

insert into public.conversations (id, kind, title, created_by) values
    ('c0000000-0000-4000-8000-000000000001', 'direct', null, '11111111-1111-4111-8111-111111111111'),
    ('c0000000-0000-4000-8000-000000000002', 'group', 'Launch crew', '44444444-4444-4444-8444-444444444444'),
    ('c0000000-0000-4000-8000-000000000003', 'direct', null, '44444444-4444-4444-8444-444444444444'),
    ('c0000000-0000-4000-8000-000000000004', 'group', 'Compiler corner', '22222222-2222-4222-8222-222222222222')
on conflict do nothing;

insert into public.conversation_participants (conversation_id, user_id, muted) values
    ('c0000000-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', false),
    ('c0000000-0000-4000-8000-000000000001', '22222222-2222-4222-8222-222222222222', false),
    ('c0000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', false),
    ('c0000000-0000-4000-8000-000000000002', '22222222-2222-4222-8222-222222222222', false),
    ('c0000000-0000-4000-8000-000000000002', '44444444-4444-4444-8444-444444444444', false),
    ('c0000000-0000-4000-8000-000000000002', '55555555-5555-4555-8555-555555555555', false),
    ('c0000000-0000-4000-8000-000000000003', '11111111-1111-4111-8111-111111111111', false),
    ('c0000000-0000-4000-8000-000000000003', '44444444-4444-4444-8444-444444444444', false),
    ('c0000000-0000-4000-8000-000000000004', '22222222-2222-4222-8222-222222222222', false),
    ('c0000000-0000-4000-8000-000000000004', '33333333-3333-4333-8333-333333333333', false),
    ('c0000000-0000-4000-8000-000000000004', '55555555-5555-4555-8555-555555555555', true)
on conflict do nothing;

-- Everyone has read this history, except that Margaret's last question to Ada is still unread.
with script (conversation, line, sender, ago, body) as (
    values
    (2, 1, '4', interval '26 hours', 'Guidance rehearsal moves to 10:00 tomorrow. Please bring the failure list.'),
    (2, 2, '5', interval '25 hours 52 minutes', 'I checked the trajectory tables twice. They agree to six places.'),
    (2, 3, '1', interval '25 hours 50 minutes', 'Six is five more than I hoped for.'),
    (2, 4, '2', interval '25 hours 41 minutes', 'I will bring the nanoseconds.'),
    (2, 5, '4', interval '25 hours 40 minutes', 'All 30 centimetres of them, thank you.'),
    (4, 1, '2', interval '7 hours', 'The new parser takes the whole corpus in one pass now.'),
    (4, 2, '3', interval '6 hours 48 minutes', 'Nice. I will believe it when I see the patch.'),
    (4, 3, '2', interval '6 hours 47 minutes', 'It has been in your inbox since Tuesday.'),
    (4, 4, '3', interval '6 hours 30 minutes', 'Ah.'),
    (3, 1, '1', interval '3 hours', 'Your priority scheduler saved the run today.'),
    (3, 2, '4', interval '2 hours 55 minutes', 'It is only there for things that cannot happen.'),
    (3, 3, '4', interval '2 hours 54 minutes', 'Could you look over the checklist before Friday?'),
    (1, 1, '1', interval '48 minutes', 'Morning! Did the engine survive the night?'),
    (1, 2, '2', interval '46 minutes', 'It did. One relay sulked at 3:45, so I wrote it up in the log.'),
    (1, 3, '2', interval '46 minutes', 'There was a moth involved. I taped it to the page.'),
    (1, 4, '1', interval '41 minutes', 'That is the most honest bug report I have read.'),
    (1, 5, '2', interval '22 minutes', 'Shall we try the new notes at eleven?'),
    (1, 6, '1', interval '20 minutes', 'Yes. I will bring the punched cards and some biscuits.')
), written as (
    insert into public.messages (conversation_id, sender_id, body, local_id, created_at)
    select
        ('c0000000-0000-4000-8000-00000000000' || conversation)::uuid,
        translate('xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx', 'x', sender)::uuid,
        body,
        format('5eed0000-0000-4000-8000-%s', lpad((conversation * 100 + line)::text, 12, '0'))::uuid,
        now() - ago
    from script
    order by ago desc
    on conflict do nothing
    returning *
)
insert into public.read_receipts (message_id, user_id, conversation_id, delivered_at, read_at)
select
    w.id, p.user_id, w.conversation_id, w.created_at,
    case when w.local_id <> '5eed0000-0000-4000-8000-000000000303' then w.created_at + interval '20 seconds' end
from written w
join public.conversation_participants p on p.conversation_id = w.conversation_id and p.user_id <> w.sender_id
on conflict do nothing;
