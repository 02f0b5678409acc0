/**
 * Every sequence of events up to a length, without running each: from where an order can stand at first, breadth first,
 * each event is applied once to each state, and equal states are one. A sequence is then a walk over the states, and what
 * holds in each of them holds at the end of every sequence.
 *
 * A state is the rows about an order together with the provider's books of its payment. An order is put into a state by
 * writing its rows back; where the handling has changed the provider's books, which cannot be undone, a new order is
 * taken along the same way.
 */
import { isDeepStrictEqual } from 'node:util'
import type { BookedPayment } from '../books.ts'
import type { Notification } from '../notifications.ts'
import { callsFor, enteredTwice, standingOf } from './books.ts'
import { eventOf, type Letter, type Told, toldBy } from './letters.ts'
import type { Rounds } from './rounds.ts'
import type { Rows } from './rows.ts'
import { booksOf, snapshotOf } from './snapshot.ts'
import type { Begin, Step, Subject, Taken } from './stage.ts'
import type { Truth } from './truths.ts'

interface State {
  snapshot: string
  rows: Rows
  books: string
  payment: BookedPayment
  /** The first way that was found to it. */
  begin: Begin
  way: readonly Letter[]
  /** What any way to it has told. */
  told: ReadonlySet<Told>
  /** An order that can be put into it, while the provider's books are still these. */
  subject: Subject
  /** By letter; empty where the sequences end. */
  next: Map<Letter, State>
}

interface Wrong {
  truth: string
  after: string
  [what: string]: unknown
}

type Engine = Rounds<Step, Taken>

export class Search {
  readonly truth: Truth
  readonly states = new Map<string, State>()
  /** By card, capture and start. */
  readonly roots = new Map<Begin, State>()
  readonly wrong: Wrong[] = []
  /** Sequences that are longer lead to no further state. */
  isComplete = false
  readonly #engine: Engine
  readonly #letters: readonly Letter[]
  /** The provider's books as the last step of each subject has left them. */
  readonly #booksNow = new Map<Subject, string>()

  constructor(engine: Engine, truth: Truth, letters: readonly Letter[]) {
    this.#engine = engine
    this.truth = truth
    this.#letters = letters
  }

  /** Finds every state that `length` events can lead to. */
  async run(length: number): Promise<void> {
    const begins = this.truth.begins.flatMap(({ starts, ...how }) => starts.map((start) => ({ ...how, start })))
    await this.#engine.sideBySide(
      begins.map((begin) => async () => {
        const taken = await this.#step({ place: this.truth, as: begin })
        this.roots.set(begin, this.#stateAt(taken, begin, [], new Set()))
      }),
    )
    let level = [...new Set(this.roots.values())]
    for (let depth = 0; depth < length; depth++) {
      const found: State[] = []
      await this.#bySubject(level, async (state) => {
        found.push(...(await this.#followAll(state, depth === 0 && state === level[0])))
      })
      level = found
    }
    this.isComplete = level.length === 0
  }

  /** In every state, recovery and what settles afterwards lead to what the provider's books call for. */
  async settle(): Promise<void> {
    await this.#bySubject([...this.states.values()], async (state) => {
      const { subject, rows } = await this.#inState(state)
      const taken = await this.#step({ subject, from: rows, settle: true })
      this.judge(taken, state)
    })
  }

  /** Runs a sequence by itself, without merging anything, and holds each of its steps against the states that were found.
   * `null` in it: the event before is delivered again. */
  async runOne(begin: Begin, sequence: readonly (Letter | null)[]): Promise<void> {
    let state = this.roots.get(begin) as State
    let { subject, ...taken } = await this.#step({ place: this.truth, as: begin })
    const told = new Set<Told>()
    const way: Letter[] = []
    let event: Notification | undefined
    for (const letter of sequence) {
      if (letter !== null) {
        event = eventOf(letter, subject.objects)
        state = state.next.get(letter) as State
        way.push(letter)
        for (const each of toldBy(letter, subject.objects)) told.add(each)
      }
      ;({ subject, ...taken } = await this.#step({ subject, from: null, ...(event === undefined ? {} : { event }) }))
      const alone = snapshotOf(taken.rows, taken.payments)
      if (alone !== state.snapshot) this.#say(begin, way, { alone, merged: state.snapshot })
    }
    this.judge(await this.#step({ subject, from: null, settle: true }), { begin, way, told })
  }

  judge({ rows, payments }: Taken, { told, begin, way }: Pick<State, 'told' | 'begin' | 'way'>): void {
    const payment = payments[0] as BookedPayment
    // Where nobody waits for the payment any more and no news of it has come, nobody can know.
    const isTold = told.has('payment') || told.has('refunds') || told.has('disputes')
    const first = this.roots.get(begin)?.rows.orders?.[0]?.status
    if (!isTold && !['pending', 'requires_action', 'needs_reconcile'].includes(first)) return
    const should = callsFor(this.truth, payment, told)
    const is = standingOf(rows)
    // The event is shown on an order that it cannot be about, or cannot be true of; what follows may take that off again.
    if (told.has('untrue') && is.flag === 'notification_mismatch') is.flag = should.flag
    if (!isDeepStrictEqual(is, should)) this.#say(begin, way, { is, should })
    if (payment.status !== this.truth.end.payment) this.#say(begin, way, { payment: payment.status })
    const twice = enteredTwice(rows)
    if (twice.length > 0) this.#say(begin, way, { twice })
  }

  #say(begin: Begin, way: readonly Letter[], what: Record<string, unknown>): void {
    const after = [begin.card, begin.capture ?? '', begin.start, ...way.map(({ name }) => name)].join(' ')
    this.wrong.push({ truth: this.truth.name, after, ...what })
  }

  /** The states that it leads to and that were not known. */
  async #followAll(state: State, redeliver: boolean): Promise<State[]> {
    const found: State[] = []
    const follow = async (letter: Letter) => {
      const next = await this.#follow(state, letter, redeliver)
      if (next !== null) found.push(next)
    }
    const rest = [...this.#letters]
    // Where one changes the provider's books others will, and each then needs an order of its own.
    while (rest.length > 0 && this.#isUsable(state)) await follow(rest.shift() as Letter)
    await this.#engine.sideBySide(rest.map((letter) => () => follow(letter)))
    return found
  }

  /** The new state that the letter leads to; null where it is known. */
  async #follow(state: State, letter: Letter, redeliver: boolean): Promise<State | null> {
    const { subject, rows } = await this.#inState(state)
    const event = eventOf(letter, subject.objects)
    const taken = await this.#step({ subject, from: rows, event, redeliver })
    const told = new Set([...state.told, ...toldBy(letter, subject.objects)])
    const way = [...state.way, letter]
    const known = this.states.size
    const next = this.#stateAt(taken, state.begin, way, told)
    state.next.set(letter, next)
    if (this.states.size > known) return next
    // States that are one must owe the same. One that stood as it was although it has been told more is judged as told.
    const [one, other] = [callsFor(this.truth, next.payment, told), callsFor(this.truth, next.payment, next.told)]
    if (!isDeepStrictEqual(one, other)) this.#say(state.begin, way, { owes: one, merged: other })
    else
      next.told = new Set(
        [...next.told, letter.tells, ...state.told].filter((each) => each !== 'untrue' || next.told.has(each)),
      )
    return null
  }

  #stateAt({ subject, rows, payments }: Taken, begin: Begin, way: readonly Letter[], told: ReadonlySet<Told>): State {
    const snapshot = snapshotOf(rows, payments)
    const known = this.states.get(snapshot)
    if (known !== undefined) return known
    const payment = payments[0] as BookedPayment
    const state = { snapshot, rows, books: booksOf(payments), payment, begin, way, told, subject, next: new Map() }
    this.states.set(snapshot, state)
    return state
  }

  /** An order that can be put into the state, and the rows that do it. */
  async #inState(state: State): Promise<Pick<Taken, 'subject' | 'rows'>> {
    if (this.#isUsable(state)) return state
    let taken = await this.#step({ place: this.truth, as: state.begin })
    for (const letter of state.way) {
      const { subject } = taken
      taken = await this.#step({ subject, from: null, event: eventOf(letter, subject.objects) })
    }
    if (snapshotOf(taken.rows, taken.payments) !== state.snapshot) {
      this.#say(state.begin, state.way, { again: snapshotOf(taken.rows, taken.payments), before: state.snapshot })
    }
    return taken
  }

  #isUsable({ subject, books }: State): boolean {
    return this.#booksNow.get(subject) === books
  }

  async #step(step: Step): Promise<Taken> {
    const taken = await this.#engine.step(step)
    this.#booksNow.set(taken.subject, booksOf(taken.payments))
    return taken
  }

  /** One after the other where they share an order, otherwise side by side. */
  #bySubject(states: readonly State[], work: (state: State) => Promise<void>): Promise<void> {
    const groups = [...Map.groupBy(states, ({ subject }) => subject).values()]
    return this.#engine.sideBySide(
      groups.map((group) => async () => {
        for (const state of group) await work(state)
      }),
    )
  }
}
