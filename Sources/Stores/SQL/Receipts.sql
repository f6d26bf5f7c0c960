-- The session that tells the application which user certainly has which row.
-- Locks: none of roost's; those that receipts.statement takes.

-- name: ReceiptSession
-- The settings of that session, besides Sessions.sql and PresenceSession.
set application_name = 'roost receipts'
