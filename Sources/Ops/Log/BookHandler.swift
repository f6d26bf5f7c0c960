import Logging

/// Passes events on to where the log goes, and warnings to the book as well.
struct BookHandler: LogHandler {
    let book: LogBook
    var target: any LogHandler

    init(book: LogBook, target: any LogHandler) {
        self.book = book
        self.target = target
        // The book's level is the one that counts.
        self.target.logLevel = .trace
    }

    func log(event: LogEvent) {
        if event.level >= .notice { book.note(event.level, event.message.description) }
        target.log(event: event)
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { target[metadataKey: key] }
        set { target[metadataKey: key] = newValue }
    }

    var metadata: Logger.Metadata {
        get { target.metadata }
        set { target.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { target.metadataProvider }
        set { target.metadataProvider = newValue }
    }

    var logLevel: Logger.Level {
        get { book.level }
        nonmutating set { book.level = newValue }
    }
}
