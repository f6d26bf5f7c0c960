import Gateway
import TestSupport
import Testing
import Wire

/// What waits for sockets, and how much of it is written: against a model that keeps every socket's bytes.
@Suite struct PendingTests {
    private func frame(_ length: Int, _ fill: UInt8) -> Frame {
        Frame(.text, count: length) { $0 += [UInt8](repeating: fill, count: length) }
    }

    @Test func aMessageOfSeveralFramesKnowsWhereTheyEnd() {
        var table = MessageTable()
        let place = table.insert(frame(3, 1))
        #expect(table.frameEnd(place, at: 0) == 5)
        #expect(table.frames(place, in: 0..<5) == 1)
        table.extend(place, with: frame(4, 2))
        table.extend(place, with: frame(1, 3))
        #expect(table.length(place) == 14)
        #expect([0, 4, 5, 10, 11, 13].map { table.frameEnd(place, at: $0) } == [5, 5, 11, 11, 14, 14])
        #expect(table.frames(place, in: 0..<14) == 3)
        #expect(table.frames(place, in: 5..<11) == 1)
        #expect(table.frames(place, in: 11..<14) == 1)
        #expect(table.frames(place, in: 5..<5) == 0)
    }

    @Test func aPlaceIsUsedAgainAsIfItWereNew() {
        var table = MessageTable()
        let place = table.insert(frame(3, 1))
        table.extend(place, with: frame(3, 1))
        table.retain(place, times: 2)
        table.release(place)
        #expect(table.count == 1)
        table.release(place)
        #expect(table.count == 0)
        let next = table.insert(frame(7, 2))
        #expect(next == place)
        #expect(table.bytes(next) == frame(7, 2).bytes)
        #expect(table.frameEnd(next, at: 0) == 9)
        #expect(table.frames(next, in: 0..<9) == 1)
    }

    /// Whoever remembers bytes by places is told that they may be others now.
    @Test func everyChangeOfBytesIsNoticed() {
        var table = MessageTable()
        let place = table.insert(frame(3, 1))
        let before = table.changes
        table.extend(place, with: frame(3, 1))
        #expect(table.changes != before)
        let extended = table.changes
        table.retain(place, times: 1)
        table.release(place)
        #expect(table.changes != extended)
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func listsAgreeWithAModel(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = MessageTable()
        var lists = PendingLists()
        let slots: Range<Int32> = 0..<6
        var model = [[UInt8]](repeating: [], count: slots.count)
        lists.reserve(slot: 5)
        for _ in 0..<2000 {
            switch random.next() % 3 {
            case 0:
                let message = frame(Int(random.next() % 9), UInt8(random.next() % 256))
                let place = table.insert(message)
                let hearers = slots.filter { _ in random.next() % 2 == 0 }
                for slot in hearers {
                    let bytes = lists.append(place, length: message.bytes.count, to: slot)
                    model[Int(slot)] += message.bytes
                    #expect(bytes == model[Int(slot)].count)
                }
                // A run: every hearer's last message grows before anything else happens.
                if let first = hearers.first, random.next() % 2 == 0 {
                    let more = frame(Int(random.next() % 9), 7)
                    table.extend(place, with: more)
                    #expect(lists.last(first) == place)
                    for slot in hearers {
                        model[Int(slot)] += more.bytes
                        #expect(lists.grow(slot, by: more.bytes.count) == model[Int(slot)].count)
                    }
                }
                table.retain(place, times: hearers.count)
            default:
                let slot = Int32(random.next() % 6)
                guard let place = lists.first(slot) else { continue }
                let (start, length) = (lists.taken(slot), table.length(place))
                #expect((lists.only(slot) != nil) == (start == 0 && lists.hasAtMostOne(slot)))
                // Up to the end of one of the frames, which is what is written or handed over.
                let end = table.frameEnd(place, at: start)
                #expect(Array(table.bytes(place)[start..<end]) == Array(model[Int(slot)].prefix(end - start)))
                model[Int(slot)].removeFirst(end - start)
                if end < length {
                    lists.advance(slot, by: end - start)
                } else {
                    #expect(lists.removeFirst(slot, length: length) == place)
                    table.release(place)
                }
            }
            for slot in slots {
                #expect(lists.bytes(slot) == model[Int(slot)].count)
                #expect(lists.isEmpty(slot) == model[Int(slot)].isEmpty)
            }
        }
        for slot in slots {
            while let place = lists.first(slot) {
                _ = lists.removeFirst(slot, length: table.length(place))
                table.release(place)
            }
        }
        #expect(table.count == 0)
    }
}
