-- The activity with an id ($1), ended or not, or those of a user ($2) or of a hub ($3) that have not ended.
-- Two of the parameters are null; as they are known when the statement is planned, the index of the third serves.
-- Locks: none.
select {activity} from roost.push_activity a
where ($1::text is null or a.id = $1) and ($2::text is null or a.user_id = $2) and ($3::text is null or a.node = $3)
    and ($1 is not null or a.ended_at is null)
order by a.registered_at, a.id
