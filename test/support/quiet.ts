import pino from 'pino'

/** A log that shows only what must not happen in a test; LOG_LEVEL=debug shows all. */
export const quiet = pino({ level: process.env.LOG_LEVEL ?? 'fatal' })
