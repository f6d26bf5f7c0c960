import RoostClient
import Testing

@Suite struct MessageProgressTests {
    @Test func itNeverGoesBack() {
        var progress = MessageProgress(OutboxItem<String>.State.waiting)
        #expect(progress == .sending)
        #expect(progress.advance(hasRead: false))
        #expect(!progress.advance(to: .sent), "the request succeeds late")
        #expect(progress == .delivered)
        #expect(progress.advance(hasRead: true))
        #expect(!progress.advance(hasRead: false))
        #expect(progress == .read)
    }

    @Test func whatWasRejectedGoesOnWhenItArrivesAfterAll() {
        var progress = MessageProgress(OutboxItem<String>.State.failed("no"))
        #expect(progress == .failed)
        #expect(progress.advance(to: .sent))
    }

    @Test func aGroupIsAsFarAsTheLastOfItsReaders() {
        #expect(MessageProgress.ofAll([.read, .delivered]) == .delivered)
        #expect(MessageProgress.ofAll([]) == .sent)
    }
}
