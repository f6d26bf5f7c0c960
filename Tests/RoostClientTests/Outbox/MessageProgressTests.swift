import RoostClient
import Testing

@Suite struct MessageProgressTests {
    @Test func itNeverGoesBack() {
        var progress = MessageProgress(OutboxItem<String>.State.waiting)
        #expect(progress == .sending)
        let step1 = progress.advance(hasRead: false)
        #expect(step1)
        let step2 = progress.advance(to: .sent)
        #expect(!step2, "the request succeeds late")
        #expect(progress == .delivered)
        let step3 = progress.advance(hasRead: true)
        #expect(step3)
        let step4 = progress.advance(hasRead: false)
        #expect(!step4)
        #expect(progress == .read)
    }

    @Test func whatWasRejectedGoesOnWhenItArrivesAfterAll() {
        var progress = MessageProgress(OutboxItem<String>.State.failed("no"))
        #expect(progress == .failed)
        let step5 = progress.advance(to: .sent)
        #expect(step5)
    }

    @Test func aGroupIsAsFarAsTheLastOfItsReaders() {
        #expect(MessageProgress.ofAll([.read, .delivered]) == .delivered)
        #expect(MessageProgress.ofAll([]) == .sent)
    }
}
