/** An operator at work in the console: signed in with a key, every button asks first and acts once, whoever else presses it. */
import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { endSending } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { launchBrowser, noBrowser, widths } from '../support/browser.ts'
import { cart, keys } from '../support/client.ts'
import { type ConsoleStage, makeJobDead, otherAdminKey, startConsoleStage } from '../support/console-stage.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { newKey, type Scene } from '../support/scene.ts'
import { chargedInDoubt, neverArrived } from '../support/stuck.ts'
import { until } from '../support/until.ts'

describe.skipIf(noBrowser)('the console', () => {
  let stage: ConsoleStage
  let scene: Scene
  let url: string
  let browser: Browser
  let context: BrowserContext

  beforeAll(async () => {
    stage = await startConsoleStage()
    scene = stage.scene
    url = `${scene.service.url}/admin`
    browser = await launchBrowser()
  })
  afterEach(async () => {
    await context?.close()
  })
  afterAll(async () => {
    if (scene !== undefined) await expectBooksInOrder(scene, { unfinished: true })
    await browser?.close()
    await stage?.stop()
  })

  async function open(hash = '#/'): Promise<Page> {
    context = await browser.newContext({ viewport: widths.desktop })
    context.setDefaultTimeout(15_000)
    return another(hash)
  }

  async function another(hash: string): Promise<Page> {
    const page = await context.newPage()
    await page.goto(url + hash)
    return page
  }

  async function enter(page: Page, key: string = keys.admin): Promise<void> {
    await page.getByLabel('API key').fill(key)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  /** As after signing in: in this window's session. */
  async function signedIn(hash: string, key: string = keys.admin): Promise<Page> {
    context = await browser.newContext({ viewport: widths.desktop })
    context.setDefaultTimeout(15_000)
    await context.addInitScript(`if (!sessionStorage.getItem('test.begun')) {
      sessionStorage.setItem('test.begun', 'yes')
      sessionStorage.setItem('checkout.admin.key', ${JSON.stringify(key)})
      sessionStorage.setItem('checkout.admin.active', String(Date.now()))
    }`)
    return another(hash)
  }

  /** As impatient people press: twice, at each step. */
  async function press(page: Page, opener: string, confirm: string, within = page.locator('main')): Promise<void> {
    await within.getByRole('button', { name: opener }).dblclick()
    await confirmed(page, confirm)
  }

  async function confirmed(page: Page, confirm: string): Promise<void> {
    const yes = page.getByRole('dialog').getByRole('button', { name: confirm })
    await yes.click({ clickCount: 2 })
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }

  const outcome = (page: Page) => page.locator('#outcome')
  async function said(page: Page, words: string): Promise<void> {
    await outcome(page).getByText(words).waitFor()
  }

  async function storyOf(id: string) {
    return (await scene.admin.get(`/v1/admin/orders/${id}`)).json
  }

  async function auditOf(id: string): Promise<string[]> {
    const { audit } = await storyOf(id)
    return audit.map(({ action, outcome: came }: { action: string; outcome: string }) => `${action} ${came}`).sort()
  }

  /** Charged once, booked once, told once. */
  async function expectPaidOnce(id: string, key: string): Promise<void> {
    const { status, transitions, ledger, jobs, stock_movements: stock } = await storyOf(id)
    expect(status).toBe('paid')
    expect(transitions.filter(({ to_status }: { to_status: string }) => to_status === 'paid')).toHaveLength(1)
    expect(ledger.map(({ kind }: { kind: string }) => kind)).toEqual(['capture'])
    expect(stock.map(({ kind }: { kind: string }) => kind)).toEqual(['reserve'])
    expect(jobs.filter(({ topic }: { topic: string }) => topic === 'order_news')).toHaveLength(1)
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_received: 1250, refunds: [] }])
  }

  /** What the merchant was sent of an order, by the id that tells repeats. */
  function deliveriesOf(id: string): unknown[] {
    return stage.merchant.received.flatMap(({ body, headers }) => (body.includes(id) ? [headers['webhook-id']] : []))
  }

  async function toldOfCharge(key: string): Promise<string> {
    const [payment] = await scene.books.paymentsFor(key)
    const told = notification('payment_intent.succeeded', await providerObject(scene, `payment_intents/${payment?.id}`))
    await deliver(scene.service.url, told)
    return told.id
  }

  describe('signing in', () => {
    it('refuses a key that is unknown, malformed or of another role, and takes the right one to where the link leads', async () => {
      const page = await open('#/jobs')
      for (const [key, words] of [
        ['ak_wrong', 'not known'],
        ['schlüssel', 'not a key'],
        [keys.backend, 'another role'],
      ] as const) {
        await enter(page, key)
        await page.getByRole('alert').getByText(words).waitFor()
      }
      await page.getByLabel('API key').fill(keys.admin)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Jobs' }).waitFor()
      await page.getByText('Demo shop').waitFor()
      const kept = await page.evaluate<string>(
        'JSON.stringify([localStorage, document.cookie, location.href, history.state])',
      )
      expect(kept).not.toContain(keys.admin)

      await page.reload()
      await page.getByRole('heading', { name: 'Jobs' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByText('You have signed out').waitFor()
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await page.reload()
      await page.getByLabel('API key').waitFor()
    })

    it('by keyboard draws no ring around the heading, and one around each control', async () => {
      const page = await open()
      await page.getByLabel('API key').focus()
      await page.keyboard.type(keys.admin)
      await page.keyboard.press('Enter')
      await page.locator('h1:focus').waitFor()
      const ring = () => page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
      expect(await ring()).toBe('none')
      await page.keyboard.press('Tab')
      expect(await ring()).toBe('solid')
    })

    it('comes back to the form with a key that is not accepted any more', async () => {
      const page = await open('#/')
      await enter(page)
      await page.getByRole('heading', { name: 'What needs a person' }).waitFor()
      await page.evaluate('sessionStorage.setItem("checkout.admin.key", "ak_revoked")')
      await page.reload()
      await page.getByText('not accepted any more').waitFor()
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
    })

    it('ends when nobody has touched the page for 15 minutes, and not before', async () => {
      context = await browser.newContext({ viewport: widths.desktop })
      const page = await context.newPage()
      await page.clock.install()
      await page.goto(`${url}#/audit`)
      await enter(page)
      await page.getByRole('heading', { name: 'Audit log' }).waitFor()
      await page.clock.fastForward('14:00')
      await page.keyboard.press('Shift')
      await page.clock.fastForward('14:00')
      expect(await page.getByRole('heading', { name: 'Audit log' }).count()).toBe(1)
      await page.clock.fastForward('02:00')
      await page.getByText('You were signed out after 15 minutes').waitFor()
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
    })
  })

  describe('the figures', () => {
    it('are read every few seconds, and not while the page is hidden', async () => {
      context = await browser.newContext({ viewport: widths.desktop })
      const page = await context.newPage()
      await page.clock.install()
      let reads = 0
      page.on('request', (request) => {
        if (request.url().includes('/v1/admin/figures')) reads += 1
      })
      await page.goto(url)
      await enter(page)
      await page.locator('main').getByText('Attempts', { exact: true }).waitFor()
      const before = reads
      await until(async () => {
        await page.clock.runFor(5000)
        return reads > before
      })
      const hide = (hidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'))`)
      await hide(true)
      await page.waitForLoadState('networkidle')
      const hidden = reads
      await page.clock.runFor(60_000)
      expect(reads).toBe(hidden)
      await hide(false)
      await until(() => reads > hidden)
    })
  })

  describe('an order that needs reconciliation', () => {
    it('is found from the start page and reconciled, once', async () => {
      const { id, key } = await chargedInDoubt(scene)
      const page = await signedIn('#/')
      await page.getByRole('link', { name: /needs? reconciliation/ }).click()
      await page.getByRole('link', { name: id }).click()
      await page.getByText('Needs reconciliation: provider error').waitFor()
      await press(page, 'Reconcile now', 'Ask now')
      await said(page, 'The order is now: paid.')
      await expectPaidOnce(id, key)
      expect(await auditOf(id)).toEqual(['reconcile paid'])
      await page.getByText('Reconcile now. What came of it: paid').waitFor()
      await page.goBack()
      await page.getByRole('heading', { name: 'Orders' }).waitFor()
      expect(await page.getByRole('link', { name: id }).count()).toBe(0)
      await page.getByRole('link', { name: 'Paid', exact: true }).click()
      await page.getByRole('link', { name: id }).waitFor()
      await page.getByRole('link', { name: 'Flagged' }).click()
      await page.getByText('No order needs a person.').waitFor()
    })

    it('is decided by hand, with the keyboard alone', async () => {
      const { id, key } = await neverArrived(scene)
      await endSending(scene.db, key)
      const page = await signedIn(`#/orders/${id}`)
      await page.getByRole('button', { name: 'Decide' }).focus()
      await page.keyboard.press('Enter')
      await page.getByText('Choose what to decide').waitFor()
      await page.keyboard.press('Space')
      await page.keyboard.press('Tab')
      await page.keyboard.type('no payment in the dashboard <b>')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog', { name: 'Decide: canceled?' })
      await dialog.getByText('no payment in the dashboard <b>').waitFor()
      for (const words of [id, '12.50', 'ada@example.com']) await dialog.getByText(words).waitFor()
      await until(() => dialog.getByRole('button', { name: 'Decide' }).isEnabled())
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await said(page, 'The order is now: canceled.')
      const { status, stock_movements: stock, audit } = await storyOf(id)
      expect(status).toBe('canceled')
      expect(stock.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['release', 'reserve'])
      expect(audit).toMatchObject([
        { action: 'decide_canceled', outcome: 'canceled', reason: 'no payment in the dashboard <b>' },
      ])
      expect(await scene.books.paymentsFor(key)).toEqual([])
    })

    it('is not decided against the provider’s word, and the page says why', async () => {
      const { id, key } = await chargedInDoubt(scene)
      const page = await signedIn(`#/orders/${id}`)
      await page.getByLabel('Canceled').check()
      await page.getByRole('button', { name: 'Decide' }).dblclick()
      await page.getByText('Say why.').waitFor()
      await page.getByLabel('Why, in your own words').fill('impatient')
      await press(page, 'Decide', 'Decide')
      await said(page, 'The payment provider says otherwise')
      await expectPaidOnce(id, key)
      expect(await auditOf(id)).toEqual(['decide_canceled provider_disagrees'])
    })

    it('keeps what was written where the decision could not be taken, and says once why', async () => {
      const { id } = await neverArrived(scene)
      const page = await signedIn(`#/orders/${id}`)
      await page.getByLabel('Payment failed').check()
      await page.getByLabel('Why, in your own words').fill('the customer called')
      await scene.books.fault({ method: 'GET', path: '/v1', fault: 'drop_before', times: 100 })
      await press(page, 'Decide', 'Decide')
      await outcome(page).locator('.bad').waitFor()
      await scene.books.noFaults()
      const words = (await outcome(page).textContent()) ?? ''
      expect(words.match(/provider/g), words).toHaveLength(1)
      expect(await page.getByLabel('Payment failed').isChecked()).toBe(true)
      expect(await page.getByLabel('Why, in your own words').inputValue()).toBe('the customer called')

      // It may have been sent a moment ago: the provider not having it means nothing yet.
      await press(page, 'Decide', 'Decide')
      await said(page, 'may still arrive until')
      const until = (await outcome(page).textContent()) ?? ''
      expect(until).not.toMatch(/\d{4}-\d\d-\d\dT|otherwise|_/)
      expect(await page.getByLabel('Why, in your own words').inputValue()).toBe('the customer called')
    })

    it('is told as a story in which the same that happened again and again is one line', async () => {
      const { id } = await neverArrived(scene)
      const calls = () => scene.db.selectFrom('provider_calls').selectAll().where('order_id', '=', id)
      const first = await calls().orderBy('started_at').executeTakeFirstOrThrow()
      for (let n = 1; n <= 12; n++) {
        const started_at = new Date(first.started_at.getTime() + 86_400_000 + n * 1000)
        const call = { ...first, call_id: randomUUID(), duration_ms: n, started_at }
        await scene.db.insertInto('provider_calls').values(call).execute()
      }
      const page = await signedIn(`#/orders/${id}`)
      const story = page.locator('.timeline li')
      await story.getByText('12 times in 11 s').waitFor()
      expect(await story.filter({ hasText: 'Asked' }).count()).toBeLessThanOrEqual(
        1 + (await calls().execute()).length - 12,
      )
    })

    it('is settled once where two operators act at once', async () => {
      const { id, key } = await chargedInDoubt(scene)
      const one = await signedIn(`#/orders/${id}`)
      const two = await another(`#/orders/${id}`)
      await two.getByLabel('Payment failed').check()
      await two.getByLabel('Why, in your own words').fill('the customer called')
      await one.getByRole('button', { name: 'Reconcile now' }).click()
      await two.getByRole('button', { name: 'Decide' }).click()
      await Promise.all([confirmed(one, 'Ask now'), confirmed(two, 'Decide')])
      await said(one, 'The order is now: paid.')
      await said(two, 'says otherwise')
      await expectPaidOnce(id, key)
      expect(await auditOf(id)).toEqual(['decide_payment_failed provider_disagrees', 'reconcile paid'])
    })

    it('is told to have changed, and not replaced under whoever reads it', async () => {
      const { id, key } = await chargedInDoubt(scene)
      const page = await signedIn(`#/orders/${id}`)
      await page.getByLabel('Why, in your own words').fill('half a sentence')
      await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
      await page.getByText('has changed since it was shown').waitFor()
      expect(await page.getByLabel('Why, in your own words').inputValue()).toBe('half a sentence')
      await page.getByRole('button', { name: 'Show it as it is now' }).click()
      await page.locator('.heading').getByText('Paid', { exact: true }).waitFor()
      await expectPaidOnce(id, key)
    })

    it('is said to be in doubt where no answer came', async () => {
      const { id } = await neverArrived(scene)
      const page = await signedIn(`#/orders/${id}`)
      await page.route('**/reconcile', (route) => route.abort())
      await press(page, 'Reconcile now', 'Ask now')
      await said(page, 'it may have been done or not')
    })
  })

  it('a notification is replayed by two operators at once, and settles its order once', async () => {
    const { id, key } = await chargedInDoubt(scene)
    const eventId = await toldOfCharge(key)
    const one = await signedIn('#/events?state=waiting')
    const two = await another(`#/events/${eventId}`)
    const row = one.getByRole('row', { name: eventId })
    await Promise.all([press(one, 'Replay', 'Replay it', row), press(two, 'Replay', 'Replay it')])
    await Promise.all([said(one, 'handled again: done'), said(two, 'handled again: done')])
    await stage.work()
    await expectPaidOnce(id, key)
    expect(await auditOf(id)).toEqual(['replay done', 'replay done'])
  })

  it('a job that was given up is requeued and run, and what it does is done once', async () => {
    await stage.work()
    const { id } = (await scene.shop.checkout(newKey())).json
    await makeJobDead(scene, `${id}:paid`)
    stage.mail.received.length = 0
    stage.merchant.received.length = 0
    const page = await signedIn('#/jobs')
    const two = await another('#/jobs')
    const row = (each: Page) => each.getByRole('row', { name: id })
    await Promise.all([press(page, 'Requeue', 'Run it', row(page)), press(two, 'Requeue', 'Run it', row(two))])
    await said(page, 'is now: ready.')
    await said(two, 'is now: ready.')
    await page.getByText('No job was given up.').waitFor()
    await stage.work()
    await page.goto(`${url}#/jobs?state=done`)
    await press(page, 'Run again', 'Run it', page.getByRole('row', { name: `Spread an order’s news ${id}` }))
    await said(page, 'is now: ready.')
    await stage.work()
    expect(stage.mail.received.filter(({ text }) => text.includes(id))).toHaveLength(1)
    expect(deliveriesOf(id)).toHaveLength(1)
    expect(await auditOf(id)).toEqual(['requeue_job done', 'requeue_job done', 'requeue_job done'])
  })

  it('a job is discarded', async () => {
    const { id } = (await scene.shop.checkout(newKey())).json
    await makeJobDead(scene, `${id}:paid`)
    const page = await signedIn(`#/orders/${id}`)
    await press(page, 'Discard', 'Discard it')
    await said(page, 'is now: discarded.')
    expect(await auditOf(id)).toEqual(['discard_job done'])
  })

  it('an email in doubt is sent again, once; one that has arrived is not', async () => {
    await stage.work()
    stage.mail.faults.push('vanish', 'vanish')
    const [one, two] = [(await scene.shop.checkout(newKey())).json.id, (await scene.shop.checkout(newKey())).json.id]
    await stage.work()
    stage.mail.received.length = 0
    const page = await signedIn('#/emails')
    await press(page, 'Send again', 'Send it again', page.getByRole('row', { name: one }))
    await said(page, 'is now: waiting.')
    await press(page, 'It has arrived', 'It has arrived', page.getByRole('row', { name: two }))
    await said(page, 'is now: sent.')
    await page.getByText('No email waits for a decision.').waitFor()
    await stage.work()
    expect(stage.mail.received).toHaveLength(1)
    expect(stage.mail.received[0]?.text).toContain(one)
  })

  it('an event that the merchant did not take is delivered again under its id', async () => {
    await stage.work()
    stage.merchant.answer((_post, response) => void response.writeHead(500).end())
    const { id } = (await scene.shop.checkout(newKey())).json
    await stage.work()
    stage.merchant.answer((_post, response) => void response.writeHead(204).end())
    const [failed] = deliveriesOf(id)
    stage.merchant.received.length = 0
    const page = await signedIn('#/deliveries')
    await press(page, 'Deliver again', 'Deliver it', page.getByRole('row', { name: id }))
    await said(page, 'is delivered again')
    await stage.work()
    expect(deliveriesOf(id)).toEqual([failed])
    await page.reload()
    await page.getByText('Every event has reached the merchant.').waitFor()
  })

  it('the books are compared, and the page shows how it ends', async () => {
    const page = await signedIn('#/reports')
    await page.getByLabel('From').fill('')
    await page.getByRole('button', { name: 'Compare the books' }).click()
    await page.getByText('Give both moments.').waitFor()
    await page.getByRole('button', { name: 'Last 7 days' }).click()
    await press(page, 'Compare the books', 'Compare')
    await page.getByText('A worker is comparing').waitFor()
    await stage.work()
    await page.locator('.heading').getByText('Done').waitFor()
    const { json } = await scene.admin.get('/v1/admin/reports')
    expect(json.data).toHaveLength(1)
  })

  it('finds an order by its id, key, provider reference and email; the email is in no address', async () => {
    const key = newKey()
    const email = 'lin@example.com'
    const { id, payment } = (await scene.shop.checkout(key, cart({ customer: { email } }))).json
    const page = await signedIn('#/')
    const asked: string[] = []
    page.on('framenavigated', (frame) => asked.push(frame.url()))
    for (const text of [id, key, payment.reference, email]) {
      await page.getByRole('searchbox').fill(` ${text} `)
      await page.keyboard.press('Enter')
      if (text !== id) await page.getByRole('link', { name: id }).click()
      await page.getByRole('heading', { name: 'Order', exact: true }).waitFor()
      expect(page.url()).toContain(id)
    }
    await page.goBack()
    await page.getByText(`${email}, looked up as`).waitFor()
    expect([...asked, page.url()].filter((each) => each.includes('lin'))).toEqual([])
    await page.getByRole('searchbox').fill('pi_none')
    await page.keyboard.press('Enter')
    await page.getByText('Nothing was found for pi_none').waitFor()
  })

  it('says in words that an address asks for what there is not', async () => {
    const page = await signedIn('#/orders?status=nonsense')
    await page.getByText('asks for what does not exist: “status”').waitFor()
    expect(await page.locator('main').textContent()).not.toMatch(/querystring|constant/)
  })

  it('offers a filter for every action that the audit log lists', async () => {
    const actions = [
      'make_report',
      'erase_personal_data',
      'create_tenant',
      'create_key',
      'revoke_key',
      'request_report',
    ]
    const { id } = await neverArrived(scene)
    await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
    const page = await signedIn('#/audit')
    const kinds = page.getByRole('navigation', { name: 'Which entries' })
    await kinds.getByRole('link', { name: 'All' }).waitFor()
    const { data } = (await scene.admin.get('/v1/admin/audit?limit=100')).json
    const listed = data.map(({ action }: { action: string }) => action)
    expect(listed.length).toBeGreaterThan(0)
    for (const action of new Set([...actions, ...listed])) {
      expect(await kinds.locator(`a[href="#/audit?action=${action}"]`).count(), action).toBe(1)
    }
  })

  it('a table that is wider than the window says so, and the audit log fits a common one', async () => {
    const { id } = await neverArrived(scene)
    await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
    const page = await signedIn('#/audit')
    const hint = page.getByText('Scroll sideways')
    await page.locator('table').waitFor()
    await hint.waitFor({ state: 'hidden' })
    await page.setViewportSize(widths.phone)
    await hint.waitFor()
  })

  it('says what it could not show, and shows it when asked again', async () => {
    const page = await signedIn('#/audit')
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
    await page.route('**/v1/admin/jobs*', (route) => route.abort(), { times: 1 })
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.getByText('The service did not answer').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Jobs' }).waitFor()
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
  })

  it('shows an operator of another shop nothing of this one', async () => {
    const { id, key } = await chargedInDoubt(scene)
    const page = await signedIn(`#/orders/${id}`, otherAdminKey)
    await page.getByText('There is no such thing here').waitFor()
    await page.getByText('Other shop').waitFor()
    for (const [hash, words] of [
      ['#/', 'Nothing needs a person.'],
      ['#/orders?all=true', 'There are no such orders.'],
      ['#/jobs?state=done', 'There are no such jobs.'],
      ['#/events', 'There are no such notifications.'],
      ['#/emails', 'No email waits for a decision.'],
      ['#/deliveries?show=all', 'There are no such deliveries.'],
      ['#/reports', 'No comparison has been made yet.'],
      ['#/audit', 'Nothing of this kind has been done.'],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
      await page.locator('main').getByText(words).waitFor()
    }
    for (const text of [id, key, 'ada@example.com']) {
      await page.getByRole('searchbox').fill(text)
      await page.keyboard.press('Enter')
      await page.getByText(`Nothing was found for ${text}`).waitFor()
    }
    await scene.admin.post(`/v1/admin/orders/${id}/reconcile`)
  })
})
