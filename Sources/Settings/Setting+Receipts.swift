/// Receipts: which users have certainly received which rows, for the application's own check marks.
extension Setting {
    static let receiptsStatement = Setting(
        "receipts.statement", .statement, standard: nil,
        "The statement that records which users have certainly received which rows, in batches: $1 text[] users, $2 text[] "
            + "tables, $3 jsonb[] primary keys such as {\"id\": 5}, $4 timestamptz[] when, $5 text[] delivered or shown. It may "
            + "be told the same again. When it is not set, nothing is written; docs/receipts.md has one for the sample chat."
    )

    static let receiptsTables = Setting(
        "receipts.tables", .tables, standard: nil,
        "The tables, separated by commas as SCHEMA.TABLE, of whose new rows it is told. They have to be watched. When it is not "
            + "set, those of alerts.tables.")
}
