import Streams
import Wire

/// Encodes `StreamCheckpoint` as JSON.
extension RecordFrame {
    static func checkpointFacts(_ checkpoint: StreamCheckpoint) -> [UInt8] {
        var producers = Array("[".utf8)
        for (id, known) in checkpoint.producers.sorted(by: { $0.key.text < $1.key.text }) {
            if producers.count > 1 { producers.append(UInt8(ascii: ",")) }
            producers += JSONWriter.object { facts in
                facts.writeMember("producer", id.text)
                facts.writeMember("epoch", known.epoch)
                facts.writeMember("seq", known.sequence)
                facts.writeMember("end", known.end)
            }
        }
        producers.append(UInt8(ascii: "]"))
        return JSONWriter.object { facts in
            facts.writeMember("from", checkpoint.start)
            facts.writeMember("producers", json: producers)
            if let sequence = checkpoint.sequence { facts.writeMember("order", sequence) }
            if checkpoint.wasHeld { facts.writeMember("held", true) }
            facts.writeMember("attempts", checkpoint.attempts)
        }
    }

    /// Nil if anything in it cannot come from a hub.
    static func parseCheckpoint(_ facts: JSON) -> StreamCheckpoint? {
        guard let start = parseCount(facts["from"]), let attempts = parseCount(facts["attempts"]),
            let list = facts["producers"],
            list.kind == .array
        else { return nil }
        var producers: [Name: StreamCheckpoint.Producer] = [:]
        for json in list.elements {
            guard let id = json["producer"]?.string, let epoch = json["epoch"]?.int, let sequence = json["seq"]?.int,
                let stamp = ProducerStamp(told: id, epoch: epoch, sequence: sequence), let end = parseCount(json["end"])
            else { return nil }
            producers[stamp.id] = .init(epoch: stamp.epoch, sequence: stamp.sequence, end: end)
        }
        return StreamCheckpoint(
            start: start, producers: producers, sequence: facts["order"]?.string,
            wasHeld: facts["held"]?.bool ?? false, attempts: attempts)
    }

    private static func parseCount(_ json: JSON?) -> Int? { json?.int.flatMap { 0...(1 << 52) ~= $0 ? $0 : nil } }
}
