import Streams

/// Generations of a name: the next takes the place of one that has ended (`create`), and whoever reads that is shown the rest of it.
extension StreamWorker {
    /// Which of two files of one name counts: the hub may have been killed while the name was opened for its next turn.
    enum Precedence { case first, second, unknown }

    /// - Parameter log: of the second, which was read just now.
    func precedence(of other: KeptStream, over log: StreamLog) -> Precedence {
        if other.log.ending != nil, other.log.createdAt < log.createdAt { return .second }
        return log.ending != nil && log.createdAt < other.log.createdAt ? .first : .unknown
    }

    func putAside(_ file: StreamFolder.File) {
        setup.logger.warning("A file of streams.directory holds no stream, and was put aside as .damaged.")
        folder.setAside(file)
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
