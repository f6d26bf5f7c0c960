-- The session that tells the application who certainly has which row.
-- Locks: none of roost's; what receipts.statement takes.

-- name: ReceiptSession
-- What that session runs besides Sessions.sql and PresenceSession.
set application_name = 'roost receipts'
