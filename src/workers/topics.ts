/** What each topic of jobs does, how many run at once in a process, and how long it is tried. */

import type { GivenUp, GroupHandler, JobHandler } from '../flows/jobs/job-run.ts'
import { emailGivenUp, sendEmail } from '../flows/news/mail.ts'
import { deliverEvent, redeliveryPauseMs } from '../flows/news/merchant-events.ts'
import { spreadOrderNews } from '../flows/news/order-news.ts'
import { handleProviderEvent } from '../flows/notifications/events.ts'
import { runReport } from '../flows/operators/reconciliation-report.ts'
import { refundLatePayment } from '../flows/refunds/late-money.ts'
import { closePayment } from '../flows/saga/closing.ts'

export type Topic = {
  /** At once in one process. */
  slots: number
  /** Of one tenant at once, so that one whose jobs are slow leaves room. */
  share: number
  /** The pause after the n-th failure, from 1 on, ms; null gives up. Jitter is added. */
  pauseMs(failures: number): number | null
  givenUp?: GivenUp
} & ({ run: JobHandler } | { runGroup: GroupHandler })

/** From 2 s, doubling to an hour, for about a day: an outage that lasts longer has people at work on it, and they can
 * requeue. */
function forADay(failures: number): number | null {
  return failures >= 36 ? null : Math.min(1000 * 2 ** failures, 3_600_000)
}

/** By topic. Jobs of a topic that is not here wait for a process that knows it. */
export const topics: Readonly<Record<string, Topic>> = {
  provider_event: { slots: 16, share: 8, pauseMs: forADay, run: handleProviderEvent },
  close_payment: { slots: 8, share: 4, pauseMs: forADay, run: closePayment },
  refund_late_payment: { slots: 8, share: 4, pauseMs: forADay, run: refundLatePayment },
  // A group costs little more than one.
  order_news: { slots: 64, share: 32, pauseMs: forADay, runGroup: spreadOrderNews },
  send_email: { slots: 8, share: 4, pauseMs: forADay, run: sendEmail, givenUp: emailGivenUp },
  // Merchants' servers may hang: each for as long as a delivery's time limit.
  deliver_event: { slots: 32, share: 4, pauseMs: redeliveryPauseMs, run: deliverEvent },
  // One a process: it reads the provider's books for as long as that takes.
  reconciliation_report: { slots: 1, share: 1, pauseMs: forADay, run: runReport },
}
