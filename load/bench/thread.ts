/** Load from a thread of its own, whose clock does not wait for the load beside it. */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { drive, type Load, type Run, type Shape } from './drive.ts'

export async function driveInThread(url: string, shape: Shape, load: Load): Promise<Run> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { url, shape, load } })
  const [run] = (await once(worker, 'message')) as [Run]
  return run
}

if (!isMainThread) {
  const { url, shape, load } = workerData as { url: string; shape: Shape; load: Load }
  parentPort?.postMessage(await drive(url, shape, load))
}
