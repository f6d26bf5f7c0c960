/// Something that is to happen at a time.
struct Due<Subject>: Comparable {
    let time: Int64
    let subject: Subject

    static func < (one: Due, other: Due) -> Bool { one.time < other.time }
    static func == (one: Due, other: Due) -> Bool { one.time == other.time }
}
