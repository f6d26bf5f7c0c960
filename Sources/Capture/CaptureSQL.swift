package import Postgres

/// The statements of a capture: its setup, its leader, its storing.
package enum CaptureSQL: String, NamedStatement {
    case sessionOfCapture, sessionOfStream, rawTexts, requirements, tryLead, leaderThatHangs, endReader, slotState,
        storedPosition,
        lockSlot, unlockSlot, slotIsGone, dropSlot, forgetCapture, beginCapture, blockersOfSlot, storeBegins, storeLost,
        storeEnds, describeTypes, describeTable, refreshTextNeeds, heartbeat, settleCaptures
    package static let file = StatementFile("Capture.sql")
}
