/** The proxy of a test, in front of a server or, where services reach it through PgBouncer, in front of that. */
import { pooled } from './pooling.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'

export async function startProxy(target: string): Promise<TcpProxy> {
  const proxy = await startTcpProxy(pooled(target))
  return { ...proxy, target: (url) => proxy.target(pooled(url)) }
}
