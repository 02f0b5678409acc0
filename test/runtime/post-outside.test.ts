/** Where a post to somebody else's URL really goes. Only the name service is played: what names mean is not ours to set. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { postOutside } from '../../src/runtime/post-outside.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

const { answers, asked } = vi.hoisted(() => ({ answers: [] as string[][], asked: [] as string[] }))
vi.mock('node:dns/promises', () => ({
  async lookup(host: string) {
    asked.push(host)
    const addresses = answers.shift() ?? []
    if (addresses.length === 0) throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  },
}))

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.stop())
beforeEach(() => {
  answers.length = 0
  asked.length = 0
  receiver.received.length = 0
})

function post(url: string, allowPrivate: boolean) {
  return postOutside({ url, headers: { 'webhook-id': 'evt_1' }, body: '{}', timeoutMs: 5000, allowPrivate })
}

describe('a name', () => {
  it.each([
    [['127.0.0.1']],
    [['10.0.0.8']],
    [['169.254.169.254']],
    [['::1']],
    [['::ffff:10.0.0.8']],
    [['64:ff9b::a00:8']],
    [['fd00::1']],
    [['93.184.215.14', '127.0.0.1']],
    [['127.0.0.1', '93.184.215.14']],
    [['93.184.215.14', 'fe80::1']],
  ])('that means %j is refused before anything is sent', async (addresses) => {
    answers.push(addresses)
    expect(await post('https://shop.example/hook', false)).toEqual({ kind: 'failed', reason: 'address_not_public' })
    expect(asked).toEqual(['shop.example'])
  })

  it('that means another address the second time is asked once: the connection goes where was looked', async () => {
    answers.push(['127.0.0.1'], ['192.0.2.1'])
    const url = receiver.url.replace('127.0.0.1', 'rebinding.example')
    expect(await post(`${url}/hook`, true)).toEqual({ kind: 'answered', status: 204 })
    expect(asked).toEqual(['rebinding.example'])
    expect(receiver.received.map(({ path, headers }) => [path, headers.host])).toEqual([['/hook', new URL(url).host]])
    expect(answers).toEqual([['192.0.2.1']])
  })

  it('that nobody knows is said to be so', async () => {
    expect(await post('https://nobody.example/', false)).toEqual({ kind: 'failed', reason: 'name_not_found' })
  })
})

it('an address that is written into the URL in another form is the same address', async () => {
  for (const host of [
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '①②⑦.0.0.1',
    '127。0。0。1',
    '[::ffff:7f00:1]',
  ]) {
    expect(await post(`https://${host}/`, false), host).toEqual({ kind: 'failed', reason: 'address_not_public' })
  }
  expect(asked).toEqual([])
})
