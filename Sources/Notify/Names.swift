import ChangeFeed
import Push

/// The book and the store each have words of their own for the same things.
typealias BookStamp = Push::StampRequest
typealias BookOutcome = Push::ActivityOutcome
typealias StoredStamp = ChangeFeed::StampRequest
typealias StoredStampOutcome = ChangeFeed::StampOutcome
typealias StoredOutcome = ChangeFeed::ActivityOutcome
