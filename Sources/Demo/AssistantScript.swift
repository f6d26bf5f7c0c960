/// The replies of the demo's assistant. No model is asked: a reply is a text about what the reader sees, or numbers.
package enum AssistantScript {
    /// The prefix of a message to the assistant, in any case.
    package static let call = "@assistant"

    /// A message may have 8,000 characters; the numbers up to this one need 6,892.
    package static let mostNumbers = 1600

    /// - Returns: nil if the message is not for the assistant.
    package static func question(in message: String) -> Substring? {
        guard message.prefix(call.count).lowercased() == call else { return nil }
        return message.dropFirst(call.count)
    }

    /// Returns the reply to a question in pieces, about as large as a model's tokens, each of whole characters. A question with `count`
    /// and a number gets the numbers up to it, for a reply of any length.
    package static func tokens(answering question: some StringProtocol) -> [String] {
        if question.lowercased().contains("count"), let last = number(in: question) {
            return (1...min(max(last, 1), mostNumbers)).map { "\($0) " }
        }
        return pieces(of: greeting(question) + text)
    }

    package static func refusal(busyWith count: Int) -> String {
        "I am answering \(count) questions already. Ask me again in a moment."
    }

    private static func number(in question: some StringProtocol) -> Int? {
        question.split { !$0.isASCII || !$0.isNumber }.last.map { Int($0) ?? mostNumbers }
    }

    /// Repeats the question, as text that a page must not take for markup.
    private static func greeting(_ question: some StringProtocol) -> String {
        let words = question.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard !words.isEmpty else { return "" }
        return "You asked: “\(words.prefix(200))\(words.count > 200 ? " …" : "")”\n\n"
    }

    /// Splits a text into words with their trailing white space, and long words in halves.
    private static func pieces(of text: String) -> [String] {
        var pieces: [String] = []
        var rest = text[...]
        while !rest.isEmpty {
            let word = rest.prefix { !$0.isWhitespace }
            let space = rest[word.endIndex...].prefix(while: \.isWhitespace)
            if word.count > 6 {
                let middle = word.index(word.startIndex, offsetBy: word.count / 2)
                pieces.append(String(word[..<middle]))
                pieces.append(String(rest[middle..<space.endIndex]))
            } else {
                pieces.append(String(rest[..<space.endIndex]))
            }
            rest = rest[space.endIndex...]
        }
        return pieces
    }

    private static let text = """
        This reply is a stream. No model is asked: a script appends it token by token, about thirty a second. Each append has \
        a number, so one that is sent twice counts once.

        Both panes watch it, and a watcher is no more than an offset. Reload the page now: it gets everything so far in one \
        frame and goes on from there. Drop a connection, and it comes back to where it was.

        Press Stop in either pane, and the reply ends there for both: nobody is shown a byte behind that place, and the script \
        is told. If you let it run, its last append closes the stream, and in the same commit the reply becomes a row of the \
        table messages. Your panes take the row for the stream's text, so you never see it twice.
        """
}
