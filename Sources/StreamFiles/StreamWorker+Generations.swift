import Streams

/// Generations of a name: the next takes the place of one that has ended (`create`), and whoever reads that is shown the rest of it.
extension StreamWorker {
    /// The hub was killed while a name was opened for its next turn: the later generation counts.
    ///
    /// - Returns: false if another file has the name.
    func giveWay(to log: StreamLog) -> Bool {
        guard let other = streams[log.name] else { return true }
        guard other.log.ending != nil, other.log.createdAt < log.createdAt else { return false }
        forget(other)
        return true
    }

    /// Of streams that hubs share: the next generation follows.
    func supersede(_ stream: KeptStream) {
        forget(stream)
        retire(stream.buffer)
    }

    /// The next generation has its name: its readers are shown the rest of it, which counts for nobody's share. So there is one of each
    /// name, and the readers of the one before that end.
    func retire(_ buffer: StreamBuffer) {
        if let other = retired[buffer.name]?.buffer, other !== buffer { tell(other.setGone(), of: other) }
        retired[buffer.name] = RetiredBuffer(buffer: buffer)
    }
}

/// A generation that gave way to another. Those who read it hold it.
struct RetiredBuffer {
    weak var buffer: StreamBuffer?
}
