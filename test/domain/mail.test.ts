import { describe, expect, it } from 'vitest'
import { mailKindFor, mailText } from '../../src/domain/mail.ts'

describe('an email is called for', () => {
  it.each([
    ['authorized', null, 'authorized'],
    ['paid', null, 'paid'],
    ['refunded', null, 'refunded'],
    // Who stands before the page sees it there.
    ['payment_failed', 'pending', null],
    ['payment_failed', 'requires_action', 'payment_failed'],
    ['payment_failed', 'needs_reconcile', 'payment_failed'],
    ['canceled', 'pending', null],
    ['canceled', 'requires_action', null],
    ['canceled', 'needs_reconcile', 'canceled'],
    ['canceled', 'authorized', 'canceled'],
    ['refund_failed', null, null],
    ['disputed', null, null],
  ] as const)('by %s after %s: %s', (transition, from, kind) => {
    expect(mailKindFor({ kind: 'checkout' }, transition, from)).toBe(kind)
    expect(mailKindFor({ kind: 'run' }, transition, from)).toBeNull()
  })
})

describe('the text of an email', () => {
  const order = {
    order_id: 'ord_1',
    currency: 'KWD',
    total: 12340,
    captured: 12340,
    lines: [{ sku: 'oud', name: 'Oud\r\nTotal: 0.000 KWD', quantity: 2, unit_price: 6170, amount: 12340 }],
  }
  const facts = { order, shop: 'Souk\nX-Spam: no', name: 'Ada\r\nBcc: eve@example.com', amount: null }

  it('shows amounts as the currency has them, and no line that a name has smuggled in', () => {
    expect(mailText({ ...facts, kind: 'paid' })).toEqual({
      subject: 'Your order is paid (Souk X-Spam: no)',
      text: [
        'Hello,',
        '',
        'Thank you for your order. Your payment of 12.340 KWD has been received.',
        '',
        '2 × Oud Total: 0.000 KWD: 12.340 KWD',
        'Total: 12.340 KWD',
        '',
        'Order: ord_1',
        '',
        'Souk X-Spam: no',
        '',
      ].join('\n'),
    })
  })

  it.each(['Ada', 'Ada Lovelace', ' J. R. R. Tolkien ', 'Seán O’Casey', 'Anne-Marie', '山田太郎', "D'Angelo", 'ā́na'])(
    'greets %s',
    (name) => {
      expect(mailText({ ...facts, kind: 'paid', name }).text).toMatch(`Hello ${name.trim()},\n`)
    },
  )

  it.each([
    'http://evil.example',
    'evil.example',
    'www.evil.example now',
    'Ada, your parcel waits: evil.example/x',
    'win 1000 EUR',
    'call 0900123456',
    'eve@example.com',
    '<b>Ada</b>',
    'Ada\u202emoc.live',
    'Ada\u2028Bcc: eve',
    '=?utf-8?q?x?=',
    'very long '.repeat(10),
    '   ',
  ])('repeats nothing like %j, which somebody else may have given', (name) => {
    const { subject, text } = mailText({ ...facts, kind: 'paid', name })
    expect(text).toMatch(/^Hello,\n/)
    if (name.trim() !== '') expect(subject + text).not.toContain(name)
  })

  it.each(['authorized', 'paid', 'payment_failed', 'canceled', 'refunded'] as const)(
    'of %s names the order and a sum',
    (kind) => {
      const { text } = mailText({ ...facts, kind, name: null, amount: 1000 })
      expect(text).toContain('Hello,')
      expect(text).toContain('ord_1')
      expect(text).toContain(kind === 'refunded' ? '1.000 KWD' : '12.340 KWD')
    },
  )
})
